//! Builds the sudo command line for what this process lacks the privilege to do.

/// The command under sudo, ready to be pasted into a shell.
pub(crate) fn sudo_command_line(program: &str, args: impl IntoIterator<Item = String>) -> String {
    let words = std::iter::once(program.to_owned()).chain(args);
    words.fold("sudo".to_owned(), |line, word| line + " " + &shell_quote(&word))
}

pub(crate) fn shell_quote(word: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./=:@%+,".contains(&b);
    match !word.is_empty() && word.bytes().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted_for_the_shell() {
        let line = sudo_command_line("/a b/iotop-plus", ["tune", "set", "atime@/a b'c=noatime"].map(String::from));
        assert_eq!(line, "sudo '/a b/iotop-plus' tune set 'atime@/a b'\\''c=noatime'");
    }
}
