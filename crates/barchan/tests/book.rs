//! The manual says what is: pages that the program writes are those it writes, scenes are valid, commands are understood, links and
//! included files are there, messages are the program's own.
#![allow(clippy::unwrap_used)]

mod common;

use barchan::command::understands;
use barchan::sim::scene;
use common::root;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

fn book() -> PathBuf {
    root().join("docs")
}

/// Every Markdown file directly in `folder`, with its text.
fn pages(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found: Vec<(PathBuf, String)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            (path, text)
        })
        .collect();
    found.sort();
    assert!(!found.is_empty());
    found
}

/// All pages that people read: the book and the front page.
fn everything() -> Vec<(PathBuf, String)> {
    let mut all = pages(&book());
    let readme = root().join("README.md");
    let text = std::fs::read_to_string(&readme).unwrap();
    all.push((readme, text));
    all
}

/// The blocks of code in `language`.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut inside: Option<(&'a str, Vec<&'a str>)> = None;
    for line in text.lines() {
        let plain = line.trim_start();
        match (&mut inside, plain.strip_prefix("```")) {
            (None, Some(name)) => inside = Some((name.trim(), Vec::new())),
            (Some((name, lines)), Some(_)) => {
                if *name == language {
                    found.push(lines.join("\n"));
                }
                inside = None;
            }
            (Some((_, lines)), None) => lines.push(plain),
            (None, None) => {}
        }
    }
    found
}

#[test]
fn pages_that_the_program_writes_are_those_it_writes() {
    for (name, made, command) in [
        ("scene-keys.md", scene::reference(), "schema --markdown"),
        (
            "materials.md",
            scene::preset_reference(),
            "info presets --markdown",
        ),
    ] {
        let path = book().join(name);
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            kept.trim_end() == made.trim_end(),
            "docs/{name} is out of date: barchan {command} > docs/{name}"
        );
    }
}

#[test]
fn the_table_of_contents_lists_every_page_and_no_other() {
    let summary = std::fs::read_to_string(book().join("SUMMARY.md")).unwrap();
    let listed: Vec<&str> = summary
        .split("](")
        .skip(1)
        .map(|rest| rest.split(')').next().unwrap())
        .collect();
    for name in &listed {
        assert!(book().join(name).is_file(), "SUMMARY.md lists {name}");
    }
    for (path, _) in pages(&book()) {
        let name = path.file_name().unwrap().to_string_lossy();
        let known = name == "SUMMARY.md" || listed.contains(&&*name);
        assert!(known, "SUMMARY.md does not list {name}");
    }
}

/// A page as mdBook reads it: with the files it includes.
fn assembled(path: &Path, text: &str) -> String {
    let mut parts = text.split("{{#include ");
    let mut whole = parts.next().unwrap().to_owned();
    for part in parts {
        let (name, rest) = part.split_once("}}").unwrap();
        let mut pieces = name.trim().split(':');
        let file = path.parent().unwrap().join(pieces.next().unwrap());
        let included = std::fs::read_to_string(&file);
        let included = included.unwrap_or_else(|_| panic!("{} includes {name}", path.display()));
        let number = |text: Option<&str>| text.and_then(|text| text.parse::<usize>().ok());
        let first = number(pieces.next()).unwrap_or(1);
        let last = number(pieces.next()).unwrap_or(usize::MAX);
        let lines = included.lines().take(last).skip(first - 1);
        whole.push_str(&lines.collect::<Vec<_>>().join("\n"));
        whole.push_str(rest);
    }
    whole
}

/// The text without blocks of code and pieces of it.
fn prose(text: &str) -> String {
    let outside: String = text.split("```").step_by(2).collect();
    outside.split('`').step_by(2).collect()
}

/// The places in a page that a link may name: headings, as mdBook and GitHub name them, and anchors of its own.
fn anchors(text: &str) -> Vec<String> {
    let mut fenced = false;
    let headings = text.lines().filter_map(|line| {
        fenced ^= line.trim_start().starts_with("```");
        let heading = line.strip_prefix('#').filter(|_| !fenced)?;
        let letters = heading.trim_start_matches('#').trim().chars();
        let named = letters.filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || "_-".contains(c) => Some(c.to_ascii_lowercase()),
            _ => None,
        });
        Some(named.collect())
    });
    let own = text.split("<a id=\"").skip(1);
    let own = own.map(|rest| rest.split('"').next().unwrap().to_owned());
    headings.chain(own).collect()
}

#[test]
fn every_link_and_every_picture_is_there() {
    let (mut count, mut places) = (0, 0);
    for (path, text) in everything() {
        let whole = assembled(&path, &text);
        for link in prose(&whole).split("](").skip(1) {
            let target = link.split([')', ' ']).next().unwrap();
            if target.contains("://") {
                continue;
            }
            let (file, place) = target.split_once('#').unwrap_or((target, ""));
            let there = match file {
                "" => path.clone(),
                file => path.parent().unwrap().join(file),
            };
            assert!(there.exists(), "{} links to {target}", path.display());
            // What is not in its folder is not in the book that mdBook makes.
            let leaves = path.starts_with(book()) && file.starts_with("..");
            assert!(!leaves, "{} leaves the book: {target}", path.display());
            count += 1;
            if !place.is_empty() {
                let page = std::fs::read_to_string(&there).unwrap();
                let named = anchors(&assembled(&there, &page));
                let known = named.iter().any(|name| name == place);
                assert!(known, "{} links to {target}: {named:?}", path.display());
                places += 1;
            }
        }
    }
    assert!(count > 40, "only {count} links were found");
    assert!(places > 10, "only {places} links to places were found");
}

/// A scene that a piece of one is put into.
fn completed(piece: &str) -> String {
    if piece.contains("schema = 1") || piece.contains("schema  = 1") {
        return piece.to_owned();
    }
    let mut whole = "schema = 1\nframes = 1\n".to_owned();
    for (table, text) in [
        (
            "[solver]",
            "[solver]\nmethod = \"sph\"\nresolution = \"5 cm\"\n",
        ),
        (
            "[materials.sand]",
            "[materials.sand]\npreset = \"dry-sand\"\n",
        ),
    ] {
        if !piece.contains(table) {
            whole += text;
        }
    }
    whole += piece;
    if !piece.contains("[[fill]]") {
        whole += "\n[[fill]]\nmaterial = \"sand\"\nshape = { sphere = { radius = 0.5 } }\n";
    }
    whole
}

#[test]
fn every_scene_and_every_piece_of_one_is_valid() {
    let mut count = 0;
    for (path, text) in everything() {
        for block in blocks(&text, "toml") {
            let whole = completed(&block);
            let place = root().join("scenes/gallery/book.toml");
            if let Err(error) = scene::parse(&whole, &place, &[]) {
                panic!("{}: {error}\n{whole}", path.display());
            }
            count += 1;
        }
    }
    assert!(count >= 10, "only {count} were found");
}

/// The words of a line of a shell, up to a comment, a pipe or a redirection.
fn words(line: &str) -> Vec<OsString> {
    let (mut words, mut word, mut quote, mut begun) = (Vec::new(), String::new(), None, false);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => (quote, begun) = (Some(c), true),
            (None, '#' | '|' | '>') if !begun => break,
            (None, ' ') => {
                if begun {
                    words.push(OsString::from(std::mem::take(&mut word)));
                }
                begun = false;
            }
            (_, c) => {
                word.push(c);
                begun = true;
            }
        }
    }
    if begun {
        words.push(OsString::from(word));
    }
    words
}

#[test]
fn every_command_is_understood() {
    let mut count = 0;
    for (path, text) in everything() {
        for line in blocks(&text, "sh").iter().flat_map(|block| block.lines()) {
            let line = line.replace("cargo run --release -- ", "barchan ");
            if line.starts_with("barchan ") && !line.contains("...") {
                if let Err(error) = understands(words(&line)) {
                    panic!("{}: {line}\n{error}", path.display());
                }
                count += 1;
            }
        }
    }
    assert!(count > 30, "only {count} were found");
}

#[test]
fn words_are_split_as_a_shell_does() {
    let split = words("barchan run x.toml --set a=\"4 mm\" -o 'b c' # and so on");
    assert_eq!(
        split,
        ["barchan", "run", "x.toml", "--set", "a=4 mm", "-o", "b c"]
    );
    assert_eq!(words("barchan schema --markdown > page.md").len(), 3);
}

/// The sources of all crates as one text, in which strings that are broken over lines are whole.
fn sources() -> String {
    let mut all = String::new();
    let mut pending = vec![root().join("crates")];
    while let Some(path) = pending.pop() {
        if path.is_dir() && !path.is_symlink() {
            let entries = std::fs::read_dir(path).unwrap();
            pending.extend(entries.map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|e| e == "rs")
            && !path.components().any(|part| part.as_os_str() == "tests")
        {
            all += &std::fs::read_to_string(path).unwrap();
        }
    }
    let joined: Vec<&str> = all.split("\\\n").map(str::trim_start).collect();
    joined.concat().replace("\\\"", "\"")
}

#[test]
fn messages_that_troubles_are_found_by_are_the_programs_own() {
    let page = std::fs::read_to_string(book().join("troubleshooting.md")).unwrap();
    let sources = sources();
    let mut count = 0;
    for message in page.split("**`").skip(1) {
        let message = message.split('`').next().unwrap();
        for part in message.split('…') {
            let part = part.trim();
            assert!(
                sources.contains(part),
                "the program does not say \"{part}\""
            );
            count += 1;
        }
    }
    assert!(count > 15);
}

#[test]
fn the_gallery_shows_every_scene_with_its_picture() {
    let page = std::fs::read_to_string(book().join("gallery.md")).unwrap();
    for entry in std::fs::read_dir(root().join("scenes/gallery")).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        if let Some(name) = name.strip_suffix(".toml") {
            assert!(
                page.contains(&format!("scenes/gallery/{name}.toml")),
                "gallery.md does not show {name}"
            );
        }
    }
    let pictures: Vec<PathBuf> = std::fs::read_dir(book().join("gallery"))
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .collect();
    let mut total = 0;
    for path in pictures {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(page.contains(&name), "gallery.md does not show {name}");
        let size = path.metadata().unwrap().len();
        assert!(size < 300_000, "{name} has {size} bytes");
        total += size;
    }
    assert!(total < 6_000_000, "pictures have {total} bytes");
}
