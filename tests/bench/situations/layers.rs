//! Arrays, device-mapper devices and network mounts of a stage, as guests have them. No udev runs there.

use crate::stage::{Disk, Result, Stage, run};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Arrays have numbers of their own, each used once: the kernel log still names those of before.
static ARRAYS: AtomicU32 = AtomicU32::new(100);

/// Sectors of a device.
pub fn sectors(disk: &Disk) -> Result<u64> {
    let text = run("blockdev", &["--getsz", &disk.path])?;
    text.trim().parse().map_err(|err| format!("size of {}: {err}", disk.path))
}

impl Stage {
    /// A mirror of these disks. `options` as of mdadm.
    pub fn mirror(&mut self, disks: &[&Disk], options: &[&str]) -> Result<Disk> {
        let _ = run("modprobe", &["raid1"]);
        let name = format!("md{}", ARRAYS.fetch_add(1, Relaxed));
        let path = format!("/dev/{name}");
        let count = format!("-n{}", disks.len());
        let mut args = vec!["--create", &path, "-l1", &count, "--run", "--metadata=1.2"];
        args.extend(options);
        args.extend(disks.iter().map(|disk| &*disk.path));
        run("mdadm", &args)?;
        self.remove_by(&["mdadm", "--stop", &path]);
        Ok(self.add_disk(&name, &path))
    }

    /// A device-mapper device with this table.
    pub fn mapped(&mut self, name: &str, table: &str) -> Result<Disk> {
        self.mapped_with(name, &["--table", table])
    }

    /// The same with more options of `dmsetup create`.
    pub fn mapped_with(&mut self, name: &str, options: &[&str]) -> Result<Disk> {
        run("dmsetup", &[&["create", "--noudevsync", name], options].concat())?;
        self.remove_by(&["dmsetup", "remove", "--noudevsync", "--force", name]);
        run("dmsetup", &["mknodes"])?;
        let kernel_name = run("dmsetup", &["info", "-c", "--noheadings", "-o", "blkdevname", name])?;
        Ok(self.add_disk(kernel_name.trim(), &format!("/dev/mapper/{name}")))
    }

    /// Gives a device-mapper device another table.
    pub fn remap(&self, name: &str, table: &str) -> Result<()> {
        run("dmsetup", &["reload", name, "--table", table])?;
        run("dmsetup", &["suspend", "--noudevsync", name])?;
        run("dmsetup", &["resume", "--noudevsync", name]).map(drop)
    }

    /// A thin pool with a thin volume of 400 MiB, named `NAME-pool` and `NAME`. It is low on data with fewer than `low` free
    /// chunks of 64 KiB.
    pub fn thin(&mut self, name: &str, metadata: &Disk, data: &Disk, low: u64) -> Result<(Disk, Disk)> {
        let _ = run("modprobe", &["dm-thin-pool"]);
        let pool_name = format!("{name}-pool");
        let table =
            format!("0 {} thin-pool {} {} 128 {low} 1 skip_block_zeroing", sectors(data)?, metadata.path, data.path);
        let pool = self.mapped(&pool_name, &table)?;
        run("dmsetup", &["message", &pool_name, "0", "create_thin 0"])?;
        let thin = self.mapped(name, &format!("0 {} thin {} 0", 400 << 11, pool.path))?;
        Ok((pool, thin))
    }

    /// Exports a directory in memory by NFS and mounts it over the loopback interface.
    pub fn nfs(&mut self) -> Result<PathBuf> {
        let exported = self.new_dir("exported")?;
        let path = exported.to_string_lossy().into_owned();
        run("mount", &["-t", "tmpfs", "exported", &path])?;
        let at = self.nfs_of(&exported);
        self.remove_by(&["umount", "-l", &path]);
        at
    }

    /// The same with this directory, the root of a mount.
    pub fn nfs_of(&mut self, exported: &Path) -> Result<PathBuf> {
        // Otherwise the client finds that the server is on the same machine and goes around the network.
        let _ = run("modprobe", &["nfs", "localio_enabled=0"]);
        for module in ["nfsd", "nfsv4", "sch_netem"] {
            run("modprobe", &[module])?;
        }
        let at = self.new_dir("nfs")?;
        let script = format!(
            "mkdir -p /run/rpcbind; mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd; \
             echo 10 >/proc/fs/nfsd/nfsv4leasetime; pgrep rpcbind || rpcbind; \
             exportfs -o rw,no_root_squash,fsid=0,insecure 127.0.0.1:{0} && rpc.nfsd -V 4.2 8; pgrep rpc.mountd || rpc.mountd",
            exported.display()
        );
        run("bash", &["-c", &script])?;
        let target = at.to_string_lossy().into_owned();
        run("timeout", &["60", "mount", "-t", "nfs4", "127.0.0.1:/", &target])?;
        self.remove_by(&["rpc.nfsd", "0"]);
        self.remove_by(&["exportfs", "-ua"]);
        self.remove_by(&["umount", "-fl", &target]);
        Ok(at)
    }

    /// Delays or loses all packets of the loopback interface: `delay 50ms`, `loss 100%`.
    pub fn network(&mut self, behaviour: &str) -> Result<()> {
        let words: Vec<&str> = ["qdisc", "replace", "dev", "lo", "root", "netem", "limit", "100000"]
            .into_iter()
            .chain(behaviour.split_whitespace())
            .collect();
        run("tc", &words)?;
        self.thaw_by(&["tc", "qdisc", "del", "dev", "lo", "root"]);
        Ok(())
    }
}
