//! The tree of processes: children below their parents, the row with the most loaded subtree first among siblings.
//!
//! Parents come from recordings, too, so they may be missing, reused or a cycle. Nothing here is recursive.

use super::folded_sums::FoldedSums;
use super::selection::{Candidates, ProcessQuery, ProcessWindow, compare_keys};
use super::table::ProcessTable;
use super::task::TaskKey;
use super::tree_position::TreePosition;
use crate::model::columns::process::SortKey;
use std::cmp::Ordering;

const NO_ROW: u32 = u32::MAX;

/// The tree of the rows of a table. Its buffers are kept from one tick to the next.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProcessTree {
    /// Process id, start time and row of each process, sorted.
    processes: Vec<(u32, u64, u32)>,
    nodes: Vec<Node>,
    /// Every row after its parent.
    parents_first: Vec<u32>,
    /// Children of each row, one row after the other; those of no row, the roots, come last.
    children: Vec<u32>,
    stack: Vec<(u32, TreePosition)>,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    parent: u32,
    /// Where its children begin in `children`, and their number.
    first_child: u32,
    child_count: u32,
    /// It passes the filter; it or a row below it does.
    is_match: bool,
    is_shown: bool,
    is_folded: bool,
    mark: Mark,
}

/// Whether the walk to the root has been at a row.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mark {
    Unseen,
    OnPath,
    Done,
}

impl ProcessTree {
    /// The rows of a window of the tree. A row that does not match stays above one that does. Linear in the number of
    /// rows, but for sorting siblings.
    pub(crate) fn window(&mut self, table: &ProcessTable, query: &ProcessQuery) -> ProcessWindow {
        self.link_parents(table);
        self.cut_cycles();
        self.collect_children();
        let mut sums = table.thread_sums(&query.filter.folded_pids);
        self.fold(table, &query.filter.folded_subtrees, &mut sums);
        let mut candidates = Candidates::new(table, &query.filter);
        let mut matching = 0;
        for at in 0..table.rows.len() as u32 {
            let is_match = candidates.is_match(at);
            matching += usize::from(is_match);
            self.nodes[at as usize].is_match = is_match;
            self.nodes[at as usize].is_shown = is_match;
        }
        let keys = self.subtree_keys(table, query, &sums);
        self.sort_siblings(table, &keys, query.reverse);
        let mut window = ProcessWindow { matching, idle: candidates.idle, sums, ..ProcessWindow::default() };
        self.list(query, &mut window);
        let shown_idle = self.nodes.iter().filter(|node| node.is_shown && !node.is_match).count();
        window.idle = window.idle.saturating_sub(shown_idle);
        window
    }

    /// The row above a row, as of the newest [`ProcessTree::window`].
    pub(crate) fn parent(&self, at: u32) -> Option<u32> {
        self.nodes.get(at as usize).map(|node| node.parent).filter(|parent| *parent != NO_ROW)
    }

    /// A thread is below its process; a process is below the newest one of its parent's id that is not younger than it,
    /// because ids are reused. Without one it is a root.
    fn link_parents(&mut self, table: &ProcessTable) {
        self.processes.clear();
        let keys = || table.rows.iter().map(|row| row.raw.key).zip(0..);
        self.processes.extend(keys().filter(|(key, _)| key.tid == key.pid).map(|(k, at)| (k.pid, k.starttime, at)));
        self.processes.sort_unstable();
        let processes = &self.processes;
        self.nodes.clear();
        self.nodes.extend(table.rows.iter().zip(0..).map(|(row, at)| {
            let TaskKey { pid, tid, starttime } = row.raw.key;
            let above = if tid == pid { row.raw.ppid } else { pid };
            let next = processes.partition_point(|process| *process <= (above, starttime, NO_ROW));
            let found = next.checked_sub(1).map(|i| processes[i]).filter(|found| found.0 == above && found.2 != at);
            Node {
                parent: found.map_or(NO_ROW, |found| found.2),
                first_child: 0,
                child_count: 0,
                is_match: false,
                is_shown: false,
                is_folded: false,
                mark: Mark::Unseen,
            }
        }));
    }

    /// Makes a row of each cycle of parents a root.
    fn cut_cycles(&mut self) {
        for start in 0..self.nodes.len() {
            let mut at = start;
            while self.nodes[at].mark == Mark::Unseen {
                self.nodes[at].mark = Mark::OnPath;
                match self.nodes[at].parent {
                    NO_ROW => break,
                    parent if self.nodes[parent as usize].mark == Mark::OnPath => self.nodes[at].parent = NO_ROW,
                    parent => at = parent as usize,
                }
            }
            let mut at = start;
            while self.nodes[at].mark == Mark::OnPath {
                self.nodes[at].mark = Mark::Done;
                match self.nodes[at].parent {
                    NO_ROW => break,
                    parent => at = parent as usize,
                }
            }
        }
    }

    fn collect_children(&mut self) {
        let count = self.nodes.len();
        for at in 0..count {
            let parent = self.nodes[at].parent;
            if parent != NO_ROW {
                self.nodes[parent as usize].child_count += 1;
            }
        }
        let mut next = 0;
        for node in &mut self.nodes {
            node.first_child = next;
            next += std::mem::take(&mut node.child_count);
        }
        let mut next_root = next as usize;
        self.children.clear();
        self.children.resize(count, 0);
        for at in 0..count as u32 {
            let place = match self.nodes[at as usize].parent {
                NO_ROW => {
                    next_root += 1;
                    next_root - 1
                }
                parent => {
                    let parent = &mut self.nodes[parent as usize];
                    parent.child_count += 1;
                    (parent.first_child + parent.child_count - 1) as usize
                }
            };
            self.children[place] = at;
        }
        self.order_parents_first();
    }

    fn order_parents_first(&mut self) {
        self.parents_first.clear();
        self.parents_first.extend_from_slice(&self.children[self.roots()]);
        let mut at = 0;
        while let Some(row) = self.parents_first.get(at).copied() {
            let range = self.child_range(row);
            self.parents_first.extend_from_slice(&self.children[range]);
            at += 1;
        }
    }

    /// The row of a process. The index of the table is not asked: a copy has none.
    fn process_row(&self, key: &TaskKey) -> Option<u32> {
        let wanted = (key.pid, key.starttime);
        let at = self.processes.partition_point(|process| (process.0, process.1) < wanted);
        self.processes.get(at).filter(|process| (process.0, process.1) == wanted).map(|process| process.2)
    }

    fn child_range(&self, row: u32) -> std::ops::Range<usize> {
        let node = &self.nodes[row as usize];
        let first = node.first_child as usize;
        first..first + node.child_count as usize
    }

    fn roots(&self) -> std::ops::Range<usize> {
        let below: u32 = self.nodes.iter().map(|node| node.child_count).sum();
        below as usize..self.children.len()
    }

    /// Marks the folded rows, and sums the rates of what is folded into each.
    fn fold(&mut self, table: &ProcessTable, folded: &[TaskKey], sums: &mut FoldedSums) {
        let mut pending = Vec::new();
        for key in folded {
            let Some(head) = self.process_row(key) else { continue };
            self.nodes[head as usize].is_folded = true;
            // Its threads may be folded, too.
            sums.clear(key.pid);
            pending.clear();
            pending.push(head);
            while let Some(at) = pending.pop() {
                sums.add(key.pid, table, &table.rows[at as usize]);
                pending.extend_from_slice(&self.children[self.child_range(at)]);
            }
        }
    }

    /// What each row is sorted by: the leading key of it and the rows below it; texts and ids have only their own.
    fn subtree_keys<'a>(
        &mut self,
        table: &'a ProcessTable,
        query: &ProcessQuery,
        sums: &'a FoldedSums,
    ) -> Vec<SortKey<'a>> {
        let column = query.sort_by.spec();
        let is_own = column.ascending;
        let key = |(node, at): (&Node, u32)| match node.is_match || is_own {
            true => column.sort_key(&table.row_with_sums(at, sums)),
            false => SortKey { number: f64::NAN, text: None },
        };
        let mut keys: Vec<SortKey<'a>> = self.nodes.iter().zip(0..).map(key).collect();
        for at in self.parents_first.iter().rev() {
            let Node { parent, is_shown, .. } = self.nodes[*at as usize];
            if parent == NO_ROW || !is_shown {
                continue;
            }
            self.nodes[parent as usize].is_shown = true;
            let (own, above) = (keys[*at as usize], &mut keys[parent as usize]);
            if !is_own && compare_keys(&own, above, false) == Ordering::Less {
                *above = own;
            }
        }
        keys
    }

    /// Sorts the children that are shown, before those that are not.
    fn sort_siblings(&mut self, table: &ProcessTable, keys: &[SortKey<'_>], reverse: bool) {
        let roots = self.roots();
        let (nodes, children) = (&self.nodes, &mut self.children);
        let mut sort = |range: std::ops::Range<usize>| {
            let siblings = &mut children[range];
            let mut shown = 0;
            for i in 0..siblings.len() {
                if nodes[siblings[i] as usize].is_shown {
                    siblings.swap(i, shown);
                    shown += 1;
                }
            }
            let tie = |at: u32| (table.rows[at as usize].raw.kernel_thread, table.rows[at as usize].raw.key);
            siblings[..shown].sort_unstable_by(|a, b| {
                let order = compare_keys(&keys[*a as usize], &keys[*b as usize], reverse);
                order.then_with(|| tie(*a).cmp(&tie(*b)))
            });
            shown as u32
        };
        sort(roots);
        for node in nodes.iter().filter(|node| node.child_count > 0 && node.is_shown) {
            let first = node.first_child as usize;
            sort(first..first + node.child_count as usize);
        }
    }

    /// Lists the rows of the window in order, each with its place in the tree.
    fn list(&mut self, query: &ProcessQuery, window: &mut ProcessWindow) {
        let mut stack = std::mem::take(&mut self.stack);
        stack.clear();
        let end = query.offset.saturating_add(query.height);
        self.push_shown(&mut stack, self.roots(), None);
        while let Some((at, mut position)) = stack.pop() {
            let node = &self.nodes[at as usize];
            position.is_context = !node.is_match;
            if node.is_folded {
                position.folded = self.count_below(at);
            } else {
                self.push_shown(&mut stack, self.child_range(at), Some(&position));
            }
            if (query.offset..end).contains(&window.listed) {
                window.rows.push(at);
                window.positions.push(position);
            }
            window.listed += 1;
        }
        self.stack = stack;
    }

    /// Pushes the siblings of a range that are shown, the last one first.
    fn push_shown(
        &self,
        stack: &mut Vec<(u32, TreePosition)>,
        range: std::ops::Range<usize>,
        above: Option<&TreePosition>,
    ) {
        let siblings = &self.children[range];
        let shown = siblings.partition_point(|at| self.nodes[*at as usize].is_shown);
        for (i, at) in siblings[..shown].iter().enumerate().rev() {
            let mut position = TreePosition { is_last: i + 1 == shown, ..TreePosition::default() };
            if let Some(above) = above {
                position.depth = above.depth.saturating_add(1);
                position.continued_levels = above.continued_levels << 1 | u64::from(!above.is_last);
            }
            stack.push((*at, position));
        }
    }

    /// Number of rows below a row, whatever the filter.
    fn count_below(&self, at: u32) -> u32 {
        let mut pending = vec![at];
        let mut count = 0;
        while let Some(at) = pending.pop() {
            let below = &self.children[self.child_range(at)];
            count += below.len() as u32;
            pending.extend_from_slice(below);
        }
        count
    }

    /// Where the buffers are.
    #[cfg(test)]
    pub(super) fn buffers(&self) -> [*const u8; 5] {
        let Self { processes, nodes, parents_first, children, stack } = self;
        [
            processes.as_ptr().cast(),
            nodes.as_ptr().cast(),
            parents_first.as_ptr().cast(),
            children.as_ptr().cast(),
            stack.as_ptr().cast(),
        ]
    }
}
