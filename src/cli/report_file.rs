//! `--report FILE`: a page is written whole or not at all.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Checks before a long run that a report can be written there, and does not replace an input.
pub fn check<'a>(path: &Path, inputs: impl IntoIterator<Item = &'a PathBuf>) -> Result<(), String> {
    let name = path.display();
    if path.is_dir() {
        return Err(format!(
            "--report: {name} is a directory; name a file in it"
        ));
    }
    if path.file_name().is_none() || path == Path::new("-") {
        return Err(format!(
            "--report: {name} is no file; name one, such as report.html"
        ));
    }
    let folder = folder(path);
    if !folder.is_dir() {
        return Err(format!(
            "--report: there is no directory {}; create it first",
            folder.display()
        ));
    }
    let same = |input: &PathBuf| matches!((input.canonicalize(), path.canonicalize()), (Ok(a), Ok(b)) if a == b);
    if inputs.into_iter().any(same) {
        return Err(format!("--report: {name} is the input; name another file"));
    }
    Ok(())
}

/// Writes the page beside its place, synced, and renames it into place.
pub fn write(path: &Path, page: &str) -> Result<(), String> {
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = folder(path).join(format!(".{file_name}.{}", std::process::id()));
    let written = File::create(&temporary)
        .and_then(|mut file| {
            file.write_all(page.as_bytes())?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&temporary, path));
    written.map_err(|e| {
        // What is left of it is of no use.
        let _ = fs::remove_file(&temporary);
        format!(
            "--report: cannot write {} ({e}); check its directory",
            path.display()
        )
    })
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
