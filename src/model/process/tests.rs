//! The table's promises, one test each.
