//! `tune persist` and `tune unpersist`.

use super::super::FINE;
use super::out::Out;
use super::{Done, careful, need_root};
use crate::root::Root;
use crate::tune::lasting::{self, Wanted};

/// Writes values into our files: the given ones, or those in force.
pub fn persist(root: &Root, words: &[String]) -> Done {
    let wanted = lasting::wanted(root, &mut careful(root), words)?;
    write(root, &wanted)
}

/// Takes values out of our files. What is in force now stays.
pub fn unpersist(root: &Root, words: &[String]) -> Done {
    write(root, &lasting::unwanted(root, words)?)
}

fn write(root: &Root, wanted: &Wanted) -> Done {
    need_root(root, "writing below /etc")?;
    let mut out = Out::default();
    for line in lasting::write(root, wanted)? {
        out.line(line);
    }
    Ok(out.print().map(|()| FINE))
}
