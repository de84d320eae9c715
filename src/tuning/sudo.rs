//! What to do where this process lacks a privilege: the sudo command line, or advice for root in a container.

/// The command under sudo, ready to be pasted into a shell.
pub(crate) fn sudo_command_line(program: &str, args: impl IntoIterator<Item = String>) -> String {
    let words = std::iter::once(program.to_owned()).chain(args);
    words.fold("sudo".to_owned(), |line, word| line + " " + &shell_quote(&word))
}

/// How to get capabilities that are missing, after a semicolon: root that lacks them is in a container.
pub(crate) fn privilege_advice() -> &'static str {
    match rustix::process::geteuid().is_root() {
        true => "root does not have it here: give it to the container (--cap-add, or --privileged)",
        false => "run with sudo",
    }
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
