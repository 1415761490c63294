//! ECDSA signatures: from the two integers of ASN.1, which TLS has, to the 64 bytes that a JWT has (RFC 7518, section
//! 3.4).

/// The length of each of the two numbers, for the curve P-256.
const LEN: usize = 32;

/// `SEQUENCE { INTEGER r, INTEGER s }` as `r` and `s` one after the other, each of 32 bytes.
pub(super) fn fixed(signature: &[u8]) -> Option<[u8; 2 * LEN]> {
    let (sequence, []) = element(signature, 0x30)? else { return None };
    let (r, rest) = element(sequence, 0x02)?;
    let (s, []) = element(rest, 0x02)? else { return None };
    let mut fixed = [0; 2 * LEN];
    for (number, place) in [r, s].into_iter().zip(fixed.chunks_exact_mut(LEN)) {
        // A number whose first bit is set has a zero before it; a small one is short.
        let number = number.strip_prefix(&[0]).unwrap_or(number);
        place.get_mut(LEN.checked_sub(number.len())?..)?.copy_from_slice(number);
    }
    Some(fixed)
}

/// The content of the element at the beginning, and what comes after it. Signatures of this curve have short lengths.
fn element(input: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let [found, len @ 0..0x80, rest @ ..] = input else { return None };
    (*found == tag).then(|| rest.split_at_checked(usize::from(*len)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(r: &[u8], s: &[u8]) -> Vec<u8> {
        let integer = |number: &[u8]| [&[0x02, number.len() as u8], number].concat();
        let content = [integer(r), integer(s)].concat();
        [&[0x30, content.len() as u8], &content[..]].concat()
    }

    #[test]
    fn numbers_of_any_length_get_their_place() {
        let long = [&[0][..], &[0x80; 32]].concat();

        let fixed = fixed(&encoded(&long, &[7])).expect("a signature");

        assert_eq!(fixed[..32], [0x80; 32]);
        assert_eq!((fixed[32..63].iter().sum::<u8>(), fixed[63]), (0, 7));
    }

    #[test]
    fn what_is_no_signature_is_refused() {
        let good = encoded(&[1], &[2]);
        let too_long = encoded(&[1; 33], &[2]);

        for wrong in [&b""[..], &good[..good.len() - 1], &[&good[..], &[0]].concat(), &good[1..], &too_long] {
            assert_eq!(fixed(wrong), None, "{wrong:?}");
        }
        assert!(fixed(&good).is_some());
    }
}
