//! Messages on a pipe: one JSON object a line.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, BufRead, Read, Write};

/// Why no message could be read.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The pipe failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The last line has no end, or exceeds the limit.
    #[error("its answer is cut off")]
    CutOff,
    /// The line is no message of this type.
    #[error("{0}")]
    Malformed(#[from] serde_json::Error),
}

/// A message as a line.
///
/// # Errors
/// If the value has no JSON form.
pub fn to_line(message: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// Writes a message and flushes it.
///
/// # Errors
/// If the value has no JSON form, or the reader is gone.
pub fn write(out: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    out.write_all(&to_line(message)?)?;
    out.flush()
}

/// Reads a message of at most `limit` bytes; `None` at the end of the stream.
///
/// # Errors
/// See [`FrameError`]; after [`FrameError::Malformed`] the next message can be read.
pub fn read<T: DeserializeOwned>(reader: &mut impl BufRead, limit: u64) -> Result<Option<T>, FrameError> {
    let mut line = Vec::new();
    reader.take(limit).read_until(b'\n', &mut line)?;
    match line.pop() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(serde_json::from_slice(&line)?)),
        Some(_) => Err(FrameError::CutOff),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_back_and_bad_ones_are_told_apart() {
        let mut pipe = to_line(&"one").unwrap();
        pipe.extend(b"nonsense\n\"cut");
        let mut reader = pipe.as_slice();
        assert_eq!(read::<String>(&mut reader, 100).unwrap().as_deref(), Some("one"));
        assert!(matches!(read::<String>(&mut reader, 100), Err(FrameError::Malformed(_))));
        assert!(matches!(read::<String>(&mut reader, 100), Err(FrameError::CutOff)));
        assert!(matches!(read::<String>(&mut reader, 100), Ok(None)));
        assert!(matches!(read::<String>(&mut b"\"long\"\n".as_slice(), 4), Err(FrameError::CutOff)));
    }
}
