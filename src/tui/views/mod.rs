//! The views, one directory each: state, keys, layout, rendering and tests.

pub mod syncs;
