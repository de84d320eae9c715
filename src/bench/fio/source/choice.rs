//! Which file and which priority an operation gets.

use super::super::job::FileService;
use super::FioSource;
use crate::bench::engine::OpPriority;

impl FioSource<'_> {
    /// The next file that has operations left; with `openfiles`, of those that are open (`get_next_file`, io_u.c).
    pub(super) fn next_file(&mut self) -> Option<usize> {
        let n = self.files.len();
        if n == 1 {
            return (!self.files[0].is_done).then_some(0);
        }
        if self.file_run > 0 && !self.files[self.file].is_done {
            self.file_run -= 1;
            return Some(self.file);
        }
        let first = match self.job.file_service {
            FileService::Random => self.random.file.below(n as u64) as usize,
            FileService::Sequential => self.file,
            FileService::RoundRobin if self.sums.pass_operations == 0 => 0,
            FileService::RoundRobin => (self.file + 1) % n,
        };
        let most = match self.job.openfiles as usize {
            0 => n,
            most => most,
        };
        let may_open = most >= n || self.files.iter().filter(|file| file.is_open && !file.is_done).count() < most;
        let has_next = |file: &usize| {
            let file = &self.files[*file];
            !file.is_done && (may_open || file.is_open)
        };
        self.file = (first..n).chain(0..first).find(has_next)?;
        self.files[self.file].is_open = true;
        self.file_run = self.job.file_service_run - 1;
        Some(self.file)
    }

    /// The priority of `cmdprio_percentage` or `cmdprio_bssplit` (`fio_cmdprio_set_ioprio`, engines/cmdprio.c).
    pub(super) fn choose_priority(&mut self, direction: usize, len: u64) -> OpPriority {
        let all = &self.job.cmdprio[direction];
        if all.is_empty() {
            return OpPriority::default();
        }
        let mut drawn = self.random.priority.below(100);
        for choice in all.iter().filter(|choice| choice.block == 0 || choice.block == len) {
            let percent = u64::from(choice.percent);
            if drawn < percent {
                let class = self.job.cmdprio_class[direction];
                // Without a class, fio takes the real-time one.
                let given = (if class == 0 { 1 } else { class }, self.job.cmdprio_level[direction], 0);
                let (class, level, hint) = choice.priority.unwrap_or(given);
                return OpPriority::new(class, level, hint);
            }
            drawn -= percent;
        }
        OpPriority::default()
    }
}
