//! The exchange of the RFC, and what a broker may say that must not be believed.

use super::*;

const NONCE: &str = "rOprNGfwEbeRWgbNEkqO";
const SERVER_FIRST: &str = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
const SIGNATURE: &str = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";

/// The exchange of RFC 7677, section 3, at its beginning.
fn begun() -> Exchange {
    Scram::new(ScramHash::Sha256, "user", "pencil").begin(NONCE.to_owned())
}

/// What the client says next, or why it stops.
fn answer(exchange: &mut Exchange, said: &str) -> Result<String, String> {
    exchange.answer(said.as_bytes()).map(|next| match next {
        Next::Say(message) => String::from_utf8(message.to_vec()).expect("text"),
        Next::Done => "done".to_owned(),
    })
}

/// Why the client stops at this first message of the broker.
#[track_caller]
fn refused(said: &str) -> String {
    answer(&mut begun(), said).expect_err("a message that must not be believed")
}

#[test]
fn the_exchange_of_the_rfc_holds() {
    let mut exchange = begun();
    assert_eq!(&*exchange.initial_response(), b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO");

    let proof = answer(&mut exchange, SERVER_FIRST);

    let expected = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                    p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
    assert_eq!(proof.as_deref(), Ok(expected));
    assert_eq!(answer(&mut exchange, SIGNATURE).as_deref(), Ok("done"));
    assert!(answer(&mut exchange, "").is_err());
}

/// AU-05: a peer that does not know the password is not the broker that is meant.
#[test]
fn a_wrong_signature_is_refused() {
    for said in ["v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G5=", "v=AAAA", "v=", "v=!", "", "e=other-error", "x=1"] {
        let mut exchange = begun();
        answer(&mut exchange, SERVER_FIRST).expect("a good challenge");

        assert!(answer(&mut exchange, said).is_err(), "{said:?}");
    }
    let mut exchange = begun();
    answer(&mut exchange, SERVER_FIRST).expect("a good challenge");
    assert!(answer(&mut exchange, "e=invalid-proof").expect_err("a refusal").contains("invalid-proof"));
}

/// AU-05.
#[test]
fn a_nonce_that_does_not_continue_ours_is_refused() {
    assert!(refused("r=another,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096").contains("nonce"));
    assert!(refused(&format!("r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")).contains("nonce"));
    assert!(refused(&format!("r={NONCE}\u{7f},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")).contains("nonce"));
    assert!(refused(&format!("r={NONCE}{},s=AAAA,i=4096", "x".repeat(5000))).contains("nonce"));
}

/// BR-146: fewer make the proof cheap to guess from, more keep the client busy.
#[test]
fn the_number_of_iterations_is_bounded() {
    let asked = |count: &str| refused(&format!("r={NONCE}x,s=W22ZaJ0SNY7soEsUEjb6gQ==,i={count}"));

    for count in ["4095", "1", "0", "1000001", "2147483647"] {
        assert!(asked(count).contains("from 4096 to 1000000"), "{count}");
    }
    for count in ["-1", "+4096x", "4294967296", "many"] {
        assert!(asked(count).contains("iterations"), "{count}");
    }
}

/// BR-146.
#[test]
fn only_many_iterations_are_costly() {
    let is_costly = |count: u32| begun().is_costly(format!("r={NONCE}x,s=AAAA,i={count}").as_bytes());

    assert_eq!([4096, 16_384, 16_385, 1_000_000, 1_000_001].map(is_costly), [false, false, true, true, false]);
    assert!(!begun().is_costly(b"\xff"));
}

/// AU-05: bytes that are no message of the mechanism.
#[test]
fn garbage_is_refused() {
    for said in ["", "r=", "m=must-know,r=rOprNGfwEbeRWgbNEkqOx,s=AAAA,i=4096", "i=4096,s=AAAA,r=rOprNGfwEbeRWgbNEkqOx"]
    {
        assert!(refused(said).contains("lacks 'r='"), "{said:?}");
    }
    assert!(refused(&format!("r={NONCE}x,s=!,i=4096")).contains("base64"));
    assert!(refused(&format!("r={NONCE}x,s=AAAA")).contains("lacks 'i='"));
    assert!(begun().answer(b"\xff\xfe").is_err());
}

/// Extensions behind the iterations need not be known.
#[test]
fn unknown_extensions_are_passed_over() {
    assert!(answer(&mut begun(), &format!("r={NONCE}x,s=AAAA,i=4096,q=1,z=2")).is_ok());
}

#[test]
fn names_are_escaped() {
    let first =
        |scram: Scram| String::from_utf8(scram.begin("N".to_owned()).initial_response().to_vec()).expect("text");

    assert_eq!(first(Scram::new(ScramHash::Sha512, "a=b,c", "x")), "n,,n=a=3Db=2Cc,r=N");
    assert_eq!(first(Scram::token(ScramHash::Sha256, "id", "x")), "n,,n=id,r=N,tokenauth=true");
}

/// The broker's salt stays the same from connection to connection.
#[test]
fn the_salted_password_is_kept() {
    let scram = Scram::new(ScramHash::Sha256, "user", "pencil");
    let mut proofs = [(); 2].map(|()| answer(&mut scram.begin(NONCE.to_owned()), SERVER_FIRST));
    assert_eq!(proofs[0], proofs[1]);

    let another = SERVER_FIRST.replace("i=4096", "i=5000");
    proofs[1] = answer(&mut scram.begin(NONCE.to_owned()), &another);

    assert_ne!(proofs[0], proofs[1]);
    assert_eq!(scram.salted.lock().expect("not poisoned").as_ref().map(|salted| salted.iterations), Some(5000));
}

/// The user was altered meanwhile: what is proven is what one proves who never saw the salt or the count before.
#[test]
fn another_salt_is_hashed_with() {
    for altered in [SERVER_FIRST.replace("s=W22", "s=X22"), SERVER_FIRST.replace("i=4096", "i=5000")] {
        let scram = Scram::new(ScramHash::Sha256, "user", "pencil");
        answer(&mut scram.begin(NONCE.to_owned()), SERVER_FIRST).expect("a proof");

        let proof = answer(&mut scram.begin(NONCE.to_owned()), &altered);

        assert_eq!(proof.expect("a proof"), answer(&mut begun(), &altered).expect("a proof"), "{altered}");
    }
}

#[test]
fn another_spelling_is_there_only_if_it_differs() {
    let prepared = |user: &str, password: &str| Scram::new(ScramHash::Sha256, user, password).as_prepared();

    assert!(prepared("alice", "pässword").is_none());
    assert!(prepared("alice", "emoji \u{1f600}, which Unicode 3.2 did not know").is_none());
    let other = prepared("alice", "I\u{ad}X").expect("the soft hyphen goes");
    assert_eq!(other.password.expose(), "IX");
    assert_eq!(prepared("\u{2168}", "x").expect("a roman nine is two letters").user, "IX");
}

#[test]
fn debug_hides_the_password() {
    let scram = Scram::new(ScramHash::Sha256, "alice", "hunter2");
    let mut exchange = scram.begin(NONCE.to_owned());
    answer(&mut exchange, SERVER_FIRST).expect("a good challenge");

    let text = format!("{scram:?} {exchange:?}");

    assert!(text.contains("alice") && !text.contains("hunter2"), "{text}");
}

#[test]
fn empty_names_and_passwords_are_faults() {
    assert!(Scram::new(ScramHash::Sha256, "", "x").fault().is_some());
    assert!(Scram::new(ScramHash::Sha256, "x", "").fault().is_some());
    assert!(Scram::new(ScramHash::Sha256, "x", "y").fault().is_none());
}
