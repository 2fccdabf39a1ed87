//! `--report FILE` and `--map FILE`: a file is written whole or not at all, and never over an
//! input.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::files::{folder, replace_with};

/// Checks before a long run that a file can be written at this path, and that it replaces no input
/// or device; `option` names the option in messages.
pub fn check<'a>(
    option: &str,
    path: &Path,
    inputs: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<(), String> {
    let name = path.display();
    if path.is_dir() {
        return Err(format!(
            "{option}: {name} is a directory; name a file in it"
        ));
    }
    // Renaming a file over a device or a pipe would replace it.
    let is_device = path.metadata().is_ok_and(|m| !m.is_file());
    if path.file_name().is_none() || path == Path::new("-") || is_device {
        return Err(format!("{option}: {name} is no file; name a file"));
    }
    if path.is_symlink() && !path.exists() {
        return Err(format!(
            "{option}: {name} is a link to a file that is not there; name that file"
        ));
    }
    let folder = folder(path);
    if !folder.is_dir() {
        return Err(format!(
            "{option}: there is no directory {}; create it first",
            folder.display()
        ));
    }
    if inputs.into_iter().any(|input| is_same(input, path)) {
        return Err(format!("{option}: {name} is the input; name another file"));
    }
    Ok(())
}

/// Whether two paths lead to the same place, even if no file exists there yet.
pub fn is_same(a: &Path, b: &Path) -> bool {
    let place = |path: &Path| {
        path.canonicalize().or_else(|_| {
            let folder = folder(path).canonicalize()?;
            std::io::Result::Ok(folder.join(path.file_name().unwrap_or_default()))
        })
    };
    matches!((place(a), place(b)), (Ok(a), Ok(b)) if a == b)
}

/// Writes the text to a synced file beside the target and renames it. A link is kept, and the file
/// that it leads to is replaced.
pub fn write(option: &str, path: &Path, text: &str) -> Result<(), String> {
    let place = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let file_name = place.file_name().unwrap_or_default().to_string_lossy();
    let aside = folder(&place).join(format!(".{file_name}.{}", std::process::id()));
    replace_with(&place, &aside, |file| file.write_all(text.as_bytes())).map_err(|e| {
        format!(
            "{option}: cannot write {} ({e}); check its directory",
            path.display()
        )
    })
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    #[test]
    fn devices_and_links_to_nothing_are_refused_and_an_input_by_any_path() {
        let scratch = TempDir::with_prefix("trueline-report-").expect("a folder");
        let folder = scratch.path();
        let input = folder.join("in.csv");
        fs::write(&input, "score,label\n").expect("a file");
        symlink(&input, folder.join("link.csv")).expect("a link");
        symlink(folder.join("nowhere"), folder.join("dead")).expect("a link");
        symlink("/dev/null", folder.join("null")).expect("a link");
        let said = |name: &str| check("--map", &folder.join(name), [&input]);
        for (name, words) in [
            ("in.csv", "is the input"),
            ("./link.csv", "is the input"),
            ("dead", "a link to a file that is not there"),
            ("null", "is no file"),
            ("none/out.csv", "there is no directory"),
        ] {
            let why = said(name).expect_err(name);
            assert!(why.starts_with("--map: ") && why.contains(words), "{why}");
        }
        assert_eq!(said("out.csv"), Ok(()));
    }

    #[test]
    fn a_link_is_followed_and_the_file_behind_it_replaced() {
        let scratch = TempDir::with_prefix("trueline-report-").expect("a folder");
        let folder = scratch.path();
        let (file, link) = (folder.join("november.html"), folder.join("latest.html"));
        fs::write(&file, "old").expect("a file");
        symlink("november.html", &link).expect("a link");
        write("--report", &link, "new").expect("written");
        assert!(link.is_symlink() && !file.is_symlink());
        assert_eq!(fs::read_to_string(&file).expect("a file"), "new");
        assert_eq!(fs::read_dir(folder).expect("a folder").count(), 2);
    }

    #[test]
    fn two_names_of_a_file_that_is_not_there_yet_are_one_place() {
        let scratch = TempDir::with_prefix("trueline-report-").expect("a folder");
        let folder = scratch.path();
        let inside = folder.join("inside");
        fs::create_dir(&inside).expect("a folder");
        assert!(is_same(&folder.join("x"), &inside.join("../x")));
        assert!(!is_same(&folder.join("x"), &folder.join("y")));
    }
}
