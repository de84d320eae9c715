//! The collector on captured trees and on live children.

mod captured;
mod fake;
mod hanging;
mod live;
mod walked;
