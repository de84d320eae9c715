//! Counts the memory that each thread holds, so that a target that needs too much is found.

#![allow(unsafe_code)] // a global allocator

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{self, Write as _};

/// One thread may not hold more than this: an allocation beyond it fails, as if the machine had no more.
const MOST: isize = 2 << 30;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    /// The target and the number of the input that this thread runs.
    static INPUT: Cell<(&'static str, u64)> = const { Cell::new(("", 0)) };
    /// Bytes held now, and the most since the last reset.
    static HELD: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

fn add(bytes: isize) -> bool {
    let counted = HELD.try_with(|held| {
        let (now, peak) = held.get();
        let now = now.saturating_add(bytes);
        if now > MOST {
            report(bytes);
            return false;
        }
        held.set((now, peak.max(now)));
        true
    });
    counted.unwrap_or(true)
}

/// Says which input needs so much, because a failed allocation ends the process. Allocates nothing.
fn report(bytes: isize) {
    let (name, number) = INPUT.try_with(Cell::get).unwrap_or_default();
    let mut text = io::Cursor::new([0; 160]);
    let _ = writeln!(text, "{name}: input {number} needs {bytes} bytes at once; the process ends");
    let len = text.position() as usize;
    let _ = io::stderr().write_all(&text.get_ref()[..len]);
}

// SAFETY: forwards to the system's allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !add(layout.size() as isize) {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !add(layout.size() as isize) {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        add(-(layout.size() as isize));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !add(size as isize - layout.size() as isize) {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promises.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// The input that this thread runs from now on, for the message when it needs too much.
#[cfg(test)]
pub(super) fn set_input(target: &'static str, number: u64) {
    INPUT.set((target, number));
}

/// From now on the peak counts what this thread allocates beyond what it holds.
pub(super) fn reset_peak() {
    HELD.set((0, 0));
}

/// The most bytes held at once since the reset.
pub(super) fn peak() -> usize {
    HELD.get().1.max(0) as usize
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_peak_is_what_was_held_at_once() {
        super::reset_peak();
        for _ in 0..3 {
            drop(vec![0u8; 1 << 20]);
        }
        assert_eq!(super::peak() >> 20, 1);
    }
}
