//! Filters as typed: conditions such as `state=D dev=sda user=x pod=web swap>0`, and text.
//!
//! Every word must hold. A word that is no condition is text that the row must contain, together with the other such words.

/// What a condition is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum FilterField {
    State,
    Dev,
    User,
    Cgroup,
    /// A systemd unit.
    Unit,
    Container,
    /// Kubernetes' pod.
    Pod,
    /// Kubernetes' namespace.
    Ns,
    Pid,
    /// Bytes.
    Swap,
    /// Bytes per second.
    Read,
    /// Bytes per second.
    Write,
}

impl FilterField {
    fn is_long(self) -> bool {
        matches!(self, Self::Cgroup | Self::Unit | Self::Container | Self::Pod)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    Above,
    Below,
}

/// The value of a row that a condition compares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum FilterValue<'a> {
    Text(&'a str),
    Number(f64),
    /// Not known: no condition holds.
    Unknown,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FilterCondition {
    pub(crate) field: FilterField,
    comparison: Comparison,
    /// Lower case.
    text: String,
    /// Of a field that is a number.
    number: f64,
}

/// A filter, parsed.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FilterExpression {
    pub(crate) conditions: Vec<FilterCondition>,
    /// The text that is no condition, in lower case; empty: none.
    pub(crate) text: String,
}

impl FilterExpression {
    pub(crate) fn parse(typed: &str) -> Self {
        let mut out = Self::default();
        for word in typed.split_whitespace() {
            match FilterCondition::parse(word) {
                Some(condition) => out.conditions.push(condition),
                None => {
                    let gap = if out.text.is_empty() { "" } else { " " };
                    out.text += &format!("{gap}{}", word.to_ascii_lowercase());
                }
            }
        }
        out
    }
}

impl FilterCondition {
    /// `None`: the word is text.
    fn parse(word: &str) -> Option<Self> {
        let at = word.find(['=', '>', '<'])?;
        let comparison = match &word[at..=at] {
            "=" => Comparison::Equal,
            ">" => Comparison::Above,
            _ => Comparison::Below,
        };
        let (field, value) = (word[..at].parse::<FilterField>().ok()?, &word[at + 1..]);
        let is_text = !matches!(field, FilterField::Pid | FilterField::Swap | FilterField::Read | FilterField::Write);
        let number = crate::units::parse_bytes(value).ok().map(|n| n as f64);
        if value.is_empty() || is_text && comparison != Comparison::Equal || !is_text && number.is_none() {
            return None;
        }
        Some(Self { field, comparison, text: value.to_lowercase(), number: number.unwrap_or_default() })
    }

    /// Whether it holds for a value. Of a control group, unit, container or pod, a part is enough: parts of their names are
    /// made by systemd and Kubernetes.
    pub(crate) fn holds(&self, value: FilterValue<'_>) -> bool {
        match (value, self.comparison) {
            (FilterValue::Unknown, _) => false,
            (FilterValue::Text(text), _) if self.field.is_long() => text.to_lowercase().contains(&self.text),
            (FilterValue::Text(text), _) => text.to_lowercase() == self.text,
            (FilterValue::Number(n), Comparison::Equal) => n == self.number,
            (FilterValue::Number(n), Comparison::Above) => n > self.number,
            (FilterValue::Number(n), Comparison::Below) => n < self.number,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn condition(word: &str) -> FilterCondition {
        FilterCondition::parse(word).unwrap_or_else(|| panic!("{word} is a condition"))
    }

    #[test]
    fn conditions_and_text_are_told_apart() {
        let filter = FilterExpression::parse("state=D  Post swap>1M if=/dev/zero gres");
        let fields: Vec<FilterField> = filter.conditions.iter().map(|c| c.field).collect();
        assert_eq!(fields, [FilterField::State, FilterField::Swap]);
        assert_eq!(filter.text, "post if=/dev/zero gres", "an argument of a command is text");
        assert_eq!(FilterExpression::parse("swap>lots").text, "swap>lots");
        assert_eq!(FilterExpression::parse("state>D dev=").text, "state>d dev=");
    }

    #[test]
    fn a_condition_compares_and_never_holds_for_what_is_unknown() {
        assert!(condition("state=d").holds(FilterValue::Text("D")));
        assert!(!condition("dev=sda").holds(FilterValue::Text("sda1")));
        assert!(condition("cgroup=nginx").holds(FilterValue::Text("/system.slice/NGINX.service")));
        assert!(
            condition("swap>0").holds(FilterValue::Number(1.0)) && !condition("swap>0").holds(FilterValue::Number(0.0))
        );
        assert!(condition("read<1K").holds(FilterValue::Number(1023.0)));
        assert!(!condition("swap<1K").holds(FilterValue::Unknown) && !condition("dev=x").holds(FilterValue::Unknown));
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_and_every_word_is_used_once(typed in "\\PC{0,40}") {
            let filter = FilterExpression::parse(&typed);
            let words = filter.text.split_whitespace().count() + filter.conditions.len();
            prop_assert_eq!(words, typed.split_whitespace().count());
        }

        #[test]
        fn a_condition_on_a_size_means_that_size(n in 0u64..1 << 40, above in any::<bool>()) {
            let filter = FilterExpression::parse(&format!("write{}{n}", if above { '>' } else { '<' }));
            prop_assert_eq!(filter.conditions.len(), 1);
            prop_assert_eq!(filter.conditions[0].holds(FilterValue::Number(n as f64 + 1.0)), above);
            prop_assert!(!filter.conditions[0].holds(FilterValue::Number(n as f64)));
        }
    }
}
