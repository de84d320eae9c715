//! What the children say, and the player of a recording, on its way to the loop.

use super::event::Event;
use tokio::sync::mpsc::Sender;

/// Places in a queue to the loop; who finds none waits for one.
pub const QUEUE_CAPACITY: usize = 64;

/// Where it is handed in.
pub type EventSender = Sender<Box<Event>>;
