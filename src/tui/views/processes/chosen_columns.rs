//! The columns that were chosen in place of the usual ones.

use crate::model::columns::process::ProcessColumnSpec;
use crate::model::process::ProcessColumn as Col;

/// The chosen columns, for each of the four lists: processes or threads, rates or sums.
#[derive(Debug, Clone, Default)]
pub struct ChosenColumns {
    lists: [Vec<ProcessColumnSpec>; 4],
}

impl ChosenColumns {
    /// The columns of these headings, in this order; the command is always shown.
    pub fn new<T: AsRef<str>>(headers: &[T]) -> Self {
        let find = |header: &T| Col::choices().find(|c| c.header == header.as_ref()).map(|c| c.id);
        let mut ids: Vec<Col> = headers.iter().filter_map(find).collect();
        if !ids.is_empty() && !ids.contains(&Col::Command) {
            ids.push(Col::Command);
        }
        let of_list = |threads: bool, sums: bool| {
            let mut out = Vec::with_capacity(ids.len() + 1);
            for id in &ids {
                match id {
                    Col::Pid if threads => out.extend([Col::Tid, Col::Pid]),
                    Col::Read if sums => out.push(Col::AccRead),
                    Col::Write if sums => out.push(Col::AccWrite),
                    id => out.push(*id),
                }
            }
            out.into_iter().map(|id| *id.spec()).collect()
        };
        Self { lists: [of_list(false, false), of_list(false, true), of_list(true, false), of_list(true, true)] }
    }

    pub fn is_empty(&self) -> bool {
        self.lists[0].is_empty()
    }

    /// The columns of a list.
    pub fn specs(&self, threads: bool, sums: bool) -> &[ProcessColumnSpec] {
        &self.lists[usize::from(threads) * 2 + usize::from(sums)]
    }

    /// Their headings in the list of processes with rates.
    pub fn headers(&self) -> Vec<String> {
        self.lists[0].iter().map(|c| c.header.to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_threads_take_the_place_of_rates_and_processes() {
        let chosen = ChosenColumns::new(&["WRITE/s", "PID", "SWAP"]);
        let headers = |threads, sums| chosen.specs(threads, sums).iter().map(|c| c.header).collect::<Vec<_>>();
        assert_eq!(headers(false, false), ["WRITE/s", "PID", "SWAP", "COMMAND"]);
        assert_eq!(headers(true, true), ["WRITE", "TID", "PID", "SWAP", "COMMAND"]);
        assert!(ChosenColumns::new::<&str>(&[]).is_empty());
    }
}
