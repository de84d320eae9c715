//! Network file systems, made in a guest: the server is the guest itself, and its loopback interface delays or loses packets.

use super::{CRITICAL, Situation, WARNING, in_guest};
use crate::judge::Truth;

pub const SITUATIONS: &[Situation] = &[
    in_guest("nfs-slow", "an NFS server answers each call after 120 ms; a program reads", 12.0, |stage| {
        let at = stage.nfs()?;
        let table = stage.file(&at, "table", 16)?;
        stage.network("delay 60ms")?;
        stage.load_on("shop", &table, "op=randread direct=1")?;
        Ok(Truth::new(WARNING).victims("shop").says("slow").never("retransmits"))
    }),
    in_guest("nfs-silent", "an NFS server does not answer any more; a program that reads hangs", 20.0, |stage| {
        let at = stage.nfs()?;
        let table = stage.file(&at, "table", 16)?;
        stage.load_on("shop", &table, "op=randread direct=1")?;
        std::thread::sleep(std::time::Duration::from_secs(1));
        stage.network("loss 100%")?;
        Ok(Truth::new(CRITICAL).victims("shop").says("not answer"))
    }),
];
