//! Tables as differences to the tick before: the list of rows only when it changed, then the rows whose values did.

use super::codec::{Coded, DecodeError, MAX_ROWS, Wire};

/// Values that change from tick to tick.
pub(crate) trait DeltaRow {
    /// Whether any value differs from `base`.
    fn differs(&self, base: &Self) -> bool;
    /// Codes the values as differences to `base`.
    fn values(&mut self, base: &Self, w: &mut Wire) -> Coded;
}

/// A row of a table: an identity that is listed once, and values.
pub(crate) trait TableRow: DeltaRow + Clone + Default {
    /// Whether both rows are about the same thing, under the same names.
    fn is_same(&self, other: &Self) -> bool;
    fn identities(rows: &mut Vec<Self>, w: &mut Wire) -> Coded;
}

/// A whole table that ends its section. A row of a new list counts from zero.
pub(crate) fn code_table<T: TableRow>(w: &mut Wire, base: &[T], cur: &mut Vec<T>) -> Coded {
    let mut is_new = !is_same_list(base, cur, T::is_same);
    w.flag(&mut is_new)?;
    if !is_new {
        if w.is_read() {
            *cur = base.to_vec();
        }
        return code_changed_rows(w, None, base, cur);
    }
    T::identities(cur, w)?;
    code_changed_rows(w, None, &vec![T::default(); cur.len()], cur)
}

/// Whether two lists have the same rows in the same order.
pub(crate) fn is_same_list<T>(base: &[T], cur: &[T], is_same: impl Fn(&T, &T) -> bool) -> bool {
    base.len() == cur.len() && base.iter().zip(cur).all(|(a, b)| is_same(a, b))
}

/// The rows of `cur` that differ from the row of the same index in `base`, which must be as long: the distance from
/// the one before, then the values. With `max` the number of rows comes first, without it they end the section.
pub(crate) fn code_changed_rows<T: DeltaRow>(w: &mut Wire, max: Option<usize>, base: &[T], cur: &mut [T]) -> Coded {
    let mut changed: Vec<usize> = Vec::new();
    if !w.is_read() {
        changed.extend((0..cur.len()).filter(|i| cur[*i].differs(&base[*i])));
    }
    let n = max.map(|max| w.count(changed.len(), max)).transpose()?;
    let mut last = 0usize;
    for i in 0.. {
        let is_done = if w.is_read() { n.map_or(w.is_at_end(), |n| i == n) } else { i == changed.len() };
        if is_done {
            break;
        }
        let mut gap = changed.get(i).map_or(0, |at| (at - last) as u64);
        w.num(&mut gap)?;
        last = last.saturating_add(gap as usize);
        match cur.get_mut(last).zip(base.get(last)) {
            Some((cur, base)) => cur.values(base, w)?,
            None => return Err(DecodeError("a row is not in its table")),
        }
    }
    Ok(())
}

/// Codes accounts that are sorted by key, up to the end of the input: the list of keys where it changed, then the accounts that
/// differ from what their key had before, or from an `empty` one.
pub(crate) fn code_accounts<K: Ord + Clone + Default, A: DeltaRow + Clone>(
    w: &mut Wire,
    (base, cur): (&[A], &mut Vec<A>),
    key_of: impl Fn(&A) -> &K,
    code_key: impl Fn(&mut Wire, &mut K) -> Coded,
    empty: impl Fn(K) -> A,
) -> Coded {
    let keys_of = |accounts: &[A]| accounts.iter().map(|a| key_of(a).clone()).collect::<Vec<K>>();
    let mut keys = keys_of(cur);
    code_sorted_list(w, &keys_of(base), &mut keys, code_key)?;
    let mut old = base.iter().peekable();
    let before = |key: K| {
        while old.next_if(|b| *key_of(b) < key).is_some() {}
        old.next_if(|b| *key_of(b) == key).cloned().unwrap_or_else(|| empty(key))
    };
    let before: Vec<A> = keys.into_iter().map(before).collect();
    if w.is_read() {
        cur.clone_from(&before);
    }
    code_changed_rows(w, None, &before, cur)
}

/// What makes one sorted list of another: the places of the items that went, then the new items.
pub(crate) fn code_sorted_list<T: Ord + Clone + Default>(
    w: &mut Wire,
    base: &[T],
    cur: &mut Vec<T>,
    item: impl Fn(&mut Wire, &mut T) -> Coded,
) -> Coded {
    let missing_from = |all: &[T], others: &[T]| -> Vec<usize> {
        (0..all.len()).filter(|i| others.binary_search(&all[*i]).is_err()).collect()
    };
    let (mut removed, mut added) = match w.is_read() {
        true => (vec![0; 0], Vec::new()),
        false => (missing_from(base, cur), missing_from(cur, base).into_iter().map(|i| cur[i].clone()).collect()),
    };
    let mut last = 0usize;
    w.list(MAX_ROWS, &mut removed, |w, at| {
        let mut gap = at.wrapping_sub(last) as u64;
        w.num(&mut gap)?;
        last = last.saturating_add(gap as usize);
        *at = last;
        Ok(())
    })?;
    w.list(MAX_ROWS, &mut added, item)?;
    if w.is_read() {
        let mut kept: Vec<Option<T>> = base.iter().cloned().map(Some).collect();
        for at in removed {
            *kept.get_mut(at).ok_or(DecodeError("an item that is not in its list was removed"))? = None;
        }
        *cur = kept.into_iter().flatten().chain(added).collect();
        if cur.len() > MAX_ROWS {
            return Err(DecodeError("a list is longer than it can be"));
        }
        cur.sort_unstable();
        cur.dedup();
    }
    Ok(())
}
