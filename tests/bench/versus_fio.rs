fn main() {
    use iotop_plus::bench::{
        drive::*,
        engine::{uring::*, *},
        measure::recorder::*,
        spec::*,
        sys::Cpu,
        target::*,
    };
    use std::os::fd::AsRawFd;
    let a: Vec<String> = std::env::args().collect();
    let dir = std::path::PathBuf::from(&a[1]);
    let secs: u64 = a[2].parse().unwrap();
    let pairs: u32 = a[3].parse().unwrap();
    let mins: Vec<u32> = a[4].split(',').map(|s| s.parse().unwrap()).collect();
    let pats: Vec<&str> = a[5].split(',').collect();
    let size: u64 = 1 << 30;
    let root = iotop_plus::root::Root::live();
    let place = Place::check(&root, &dir, false).unwrap_or_else(|e| panic!("{}", e.why));
    let mut file = place.create(size).unwrap_or_else(|e| panic!("{}", e.why));
    file.open_direct(&root).unwrap_or_else(|e| panic!("{}", e.why));
    let stop = std::sync::atomic::AtomicBool::new(false);
    {
        let rec = Recorder::new();
        let mut e = Uring::new(file.fd(), 8, 1 << 20, Ask::default()).unwrap();
        println!("{}", e.features().describe());
        let s = IoSpec::layout(size, 1 << 20, 8, 1);
        println!(
            "layout {:?}",
            drive(&mut e, &s, Limits { bytes: size, ..Default::default() }, &rec, &stop, &mut || {})
        );
        rustix::fs::fsync(file.fd()).unwrap();
    }
    for pat in pats {
        let pct = match pat {
            "randread" => 100,
            "randwrite" => 0,
            _ => 50,
        };
        for _ in 0..pairs {
            for &m in &mins {
                let rec = Recorder::new();
                let mut e = Uring::new(file.fd(), 64, 4096, Ask::default()).unwrap();
                let s = IoSpec {
                    order: Order::Random,
                    read_pct: pct,
                    block: 4096,
                    start: 0,
                    len: size,
                    depth: 64,
                    fsync_every: 0,
                    fill: Fill::Stamp,
                    gap_ns: 0,
                    complete_min: m % 100, bytes: 0,
                    submit_max: m / 100,
                    seed: (1, 0),
                };
                let mut c0 = Cpu::now();
                drive(
                    &mut e,
                    &s,
                    Limits { ramp_ns: 500_000_000, time_ns: secs * 1_000_000_000,
                    &rec,
                    &stop,
                    &mut || c0 = Cpu::now(),
                );
                let c = Cpu::now().since(&c0);
                let (r, w) = (rec.direction(Kind::Read), rec.direction(Kind::Write));
                let n = r.ios + w.ios;
                let el = (rec.last() - rec.began().unwrap()) as f64 / 1e9;
                let l = r.lat.merged(&w.lat);
                println!(
                    "{pat} ours min={m:4} iops {:.0} cpu/io {:.0} ns (usr {:.0}) lat p50 {} p99 {} slat {:.0} csw/io {:.3}",
                    n as f64 / el,
                    (c.user_ns + c.system_ns) as f64 / n as f64,
                    c.user_ns as f64 / n as f64,
                    l.percentile(50.0).unwrap() / 1000,
                    l.percentile(99.0).unwrap() / 1000,
                    r.slat.mean_ns.max(w.slat.mean_ns),
                    c.switches as f64 / n as f64
                );
            }
            for (name, extra) in [
                ("batch", "--iodepth_batch_complete_min=1"),
                ("gtodr", "--iodepth_batch_complete_min=1 --gtod_reduce=1"),
            ] {
                let c0 = Cpu::of_children();
                let out = std::process::Command::new("fio")
                    .args([
                        "--name=b",
                        &format!("--filename=/proc/{}/fd/{}", std::process::id(), file.fd().as_raw_fd()),
                        "--size=1G",
                        "--direct=1",
                        "--time_based",
                        &format!("--runtime={secs}"),
                        "--ramp_time=0.5",
                        "--randrepeat=1",
                        "--overwrite=1",
                        "--output-format=json",
                        "--bs=4k",
                        "--ioengine=io_uring",
                        "--iodepth=64",
                        "--registerfiles",
                        "--fixedbufs",
                        "--iodepth_batch_submit=16",
                        "--iodepth_batch_complete_max=64",
                        "--lat_percentiles=1",
                        &format!("--rw={pat}"),
                    ])
                    .args(extra.split(' '))
                    .output()
                    .unwrap();
                let c = Cpu::of_children().since(&c0);
                let text = String::from_utf8_lossy(&out.stdout);
                let Some(at) = text.find('{') else {
                    panic!("{text} {}", String::from_utf8_lossy(&out.stderr))
                };
                let v: serde_json::Value = serde_json::from_str(&text[at..]).unwrap();
                let j = &v["jobs"][0];
                let f = |d: &str, k: &str| j[d][k].as_f64().unwrap();
                let n = f("read", "total_ios") + f("write", "total_ios");
                let el = f("read", "runtime").max(f("write", "runtime")) / 1e3;
                let cpu = (j["usr_cpu"].as_f64().unwrap() + j["sys_cpu"].as_f64().unwrap()) / 100.0
                    * j["job_runtime"].as_f64().unwrap()
                    / 1e3;
                let p = |q: &str| {
                    j[if pct == 0 { "write" } else { "read" }]["lat_ns"]["percentile"][q]
                        .as_f64()
                        .unwrap_or(0.0)
                        / 1e3
                };
                println!(
                    "{pat} fio {name}   iops {:.0} cpu/io {:.0} ns (usr {:.0}) lat p50 {:.0} p99 {:.0}  whole process {:.0} ns ctx {}",
                    n / el,
                    cpu * 1e9 / n,
                    j["usr_cpu"].as_f64().unwrap() / 100.0 * el * 1e9 / n,
                    p("50.000000"),
                    p("99.000000"),
                    (c.user_ns + c.system_ns) as f64 / n * el / (el + 0.5),
                    j["ctx"].as_f64().unwrap() / n
                );
            }
        }
    }
}
