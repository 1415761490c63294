//! The syntax of `.properties` files, as `java.util.Properties` reads them.

use std::iter::Peekable;
use std::str::Chars;

use zeroize::Zeroizing;

/// Reads all names and values, in order.
///
/// # Errors
/// Which line is wrong, in words. Its value is not in them.
pub(super) fn read(text: &str) -> Result<Vec<(String, Zeroizing<String>)>, String> {
    let mut properties = Vec::new();
    // Some editors begin a file with it. It is nothing of the first name.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = lines(text).enumerate();
    while let Some((number, line)) = lines.next() {
        let start = line.trim_start_matches(is_blank);
        if start.is_empty() || start.starts_with(['#', '!']) {
            continue;
        }
        let mut logical = Zeroizing::new(start.to_owned());
        // A line that ends in an odd number of backslashes goes on in the next one, without the blanks there.
        while logical.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1 {
            logical.pop();
            match lines.next() {
                // Into a text of its own: one that grows leaves a copy of itself behind, which nobody wipes.
                Some((_, more)) => {
                    let more = more.trim_start_matches(is_blank);
                    let mut longer = Zeroizing::new(String::with_capacity(logical.len() + more.len()));
                    longer.push_str(&logical);
                    longer.push_str(more);
                    logical = longer;
                }
                None => break,
            }
        }
        properties.push(entry(&logical).map_err(|why| format!("line {}: {why}", number + 1))?);
    }
    Ok(properties)
}

/// Reads `name = value`, `name: value` or `name value`.
fn entry(line: &str) -> Result<(String, Zeroizing<String>), String> {
    let mut chars = line.chars().peekable();
    let mut name = String::new();
    while let Some(next) = chars.next_if(|c| !is_blank(*c) && !matches!(c, '=' | ':')) {
        name.push(unescaped(next, &mut chars)?);
    }
    while chars.next_if(|c| is_blank(*c)).is_some() {}
    if chars.next_if(|c| matches!(c, '=' | ':')).is_some() {
        while chars.next_if(|c| is_blank(*c)).is_some() {}
    }
    let mut value = Zeroizing::new(String::with_capacity(line.len()));
    while let Some(next) = chars.next() {
        value.push(unescaped(next, &mut chars)?);
    }
    Ok((name, value))
}

fn unescaped(next: char, chars: &mut Peekable<Chars<'_>>) -> Result<char, String> {
    if next != '\\' {
        return Ok(next);
    }
    Ok(match chars.next() {
        Some('n') => '\n',
        Some('r') => '\r',
        Some('t') => '\t',
        Some('f') => '\u{c}',
        Some('u') => {
            let first = unit(chars)?;
            // Java's characters are of 16 bits: those beyond are two, one behind the other.
            let mut units = vec![first];
            if matches!(first, 0xd800..=0xdbff) && chars.next() == Some('\\') && chars.next() == Some('u') {
                units.push(unit(chars)?);
            }
            let read: Result<Vec<char>, _> = char::decode_utf16(units).collect();
            match read.as_deref() {
                Ok([whole]) => *whole,
                _ => return Err("a \\u has half a character behind it: write it out".to_owned()),
            }
        }
        Some(other) => other,
        None => '\\',
    })
}

/// What stands behind a `\u`.
fn unit(chars: &mut Peekable<Chars<'_>>) -> Result<u16, String> {
    let digits: String = chars.by_ref().take(4).collect();
    let is_whole = digits.len() == 4 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let code = u16::from_str_radix(&digits, 16).ok().filter(|_| is_whole);
    code.ok_or_else(|| "a \\u has no four hexadecimal digits behind it".to_owned())
}

/// The lines of a text, which end in `\n`, in `\r`, or in both.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.find(['\n', '\r']).unwrap_or(rest.len());
        let (line, more) = rest.split_at(end);
        if rest.is_empty() {
            return None;
        }
        rest = more.strip_prefix("\r\n").or_else(|| more.get(1..)).unwrap_or_default();
        Some(line)
    })
}

const fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\u{c}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(text: &str) -> Vec<(String, String)> {
        let read = read(text).expect("a good text");
        read.into_iter().map(|(name, value)| (name, value.to_string())).collect()
    }

    #[track_caller]
    fn assert_reads(text: &str, name: &str, value: &str) {
        assert_eq!(entries(text), [(name.to_owned(), value.to_owned())]);
    }

    #[test]
    fn names_and_values_are_kept_apart_in_three_ways() {
        for text in ["a.b=c d", "a.b = c d", "  a.b: c d", "a.b\tc d", "a.b   =   c d\r\n"] {
            assert_reads(text, "a.b", "c d");
        }
        assert_reads("a", "a", "");
        assert_reads("a=b=c", "a", "b=c");
        assert_reads(r"a\=b\:c=d", "a=b:c", "d");
    }

    /// As on the Macs of old, and as Java has it.
    #[test]
    fn lines_end_in_either_way() {
        let read =
            ["a=1\nb=2\\\n 3\n\n#x\nc=4", "a=1\rb=2\\\r 3\r\r#x\rc=4\r", "a=1\r\nb=2\\\r\n 3\r\n\r\n#x\r\nc=4\r\n"];
        for text in read {
            let expected = [("a", "1"), ("b", "23"), ("c", "4")];
            assert_eq!(entries(text), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        }
    }

    #[test]
    fn comments_and_empty_lines_are_passed_over() {
        assert_eq!(entries("# a=b\n\n  ! c=d\n   \n"), []);
    }

    #[test]
    fn a_byte_order_mark_is_passed_over() {
        assert_reads("\u{feff}a=b", "a", "b");
    }

    #[test]
    fn a_backslash_goes_on_in_the_next_line() {
        assert_reads("a=b,\\\n   c,\\\n\td", "a", "b,c,d");
        assert_reads("a=b\\\\\n", "a", "b\\");
        assert_reads("a=b\\", "a", "b");
    }

    #[test]
    fn escapes_are_read() {
        assert_reads(r#"a=\"x\"\n\t\u00e4\q"#, "a", "\"x\"\n\täq");
        assert!(read("\na=\\u12").expect_err("two digits").starts_with("line 2: "));
        assert_reads("a=x\\ud83d\\ude00y", "a", "x\u{1f600}y");
        for half in ["\\ud800", "\\ud83d\\u0041", "\\ud83dx", "\\ude00", "\\ud83d\\n", "\\u+123"] {
            read(&format!("a={half}")).expect_err("half a character");
        }
    }
}
