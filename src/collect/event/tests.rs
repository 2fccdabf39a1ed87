//! Names of streams, and their hashes.

use super::*;

#[test]
fn a_key_is_its_own_names_and_no_others() {
    let text = "abcdefghijklmnopqrstuvwxyz";
    let names: Vec<&str> = (0..=text.len()).map(|n| &text[..n]).collect();
    for a in &names {
        let key = Key::new(a, "7", "country=de");
        assert_eq!(
            (key.model(), key.version(), key.segment()),
            (*a, "7", "country=de")
        );
        for b in &names {
            assert_eq!(key.is(&Names::new(b, "7", "country=de")), a == b);
        }
    }
    let key = Key::new("ab", "c", "");
    assert!(!key.is(&Names::new("a", "bc", "")) && !key.is(&Names::new("ab", "", "c")));
}

#[test]
fn one_other_byte_makes_other_names_and_another_hash() {
    for n in 1..40 {
        let name = "x".repeat(n);
        let key = Key::new(&name, &name, &name);
        for i in 0..n {
            let mut other = name.clone();
            other.replace_range(i..=i, "y");
            for [a, b, c] in [
                [&other, &name, &name],
                [&name, &other, &name],
                [&name, &name, &other],
            ] {
                let other = Names::new(a, b, c);
                assert!(!key.is(&other) && other.hash() != key.names().hash());
            }
        }
    }
}

#[test]
fn where_one_part_ends_and_the_next_begins_matters() {
    let hash = |a, b, c| Names::new(a, b, c).hash();
    assert_ne!(hash("ab", "c", ""), hash("a", "bc", ""));
    assert_ne!(hash("a", "", "b"), hash("a", "b", ""));
    assert_ne!(hash("a", "b", ""), hash("b", "a", ""));
}
