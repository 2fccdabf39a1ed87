//! What is shipped beside the binary agrees with it and with each other: configurations in packages
//! and manifests are sound, versions, users, ports, probes and times to stop are the same
//! everywhere.
//!
//! Read as text. The scripts in `tests/deploy` build, lint and run the same files.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::support::expressions::deploy;
use crate::support::published::populated;
use crate::support::server::Server;
use trueline::config::value::Outside;
use trueline::config::{Config, Problem, Verdicts};

/// The manifests, and the roles that their pods have.
const MANIFESTS: [(&str, &[Verdicts]); 2] = [
    ("single.yaml", &[Verdicts::Own]),
    ("fleet.yaml", &[Verdicts::None, Verdicts::All]),
];

/// The processes that stop, with the time that the host gives them.
const STOPS: [(&str, &str); 5] = [
    ("systemd/trueline.service", "TimeoutStopSec="),
    ("compose/compose.yml", "stop_grace_period: "),
    (
        "helm/trueline/values.yaml",
        "terminationGracePeriodSeconds: ",
    ),
    ("kubernetes/single.yaml", "terminationGracePeriodSeconds: "),
    ("kubernetes/fleet.yaml", "terminationGracePeriodSeconds: "),
];

fn text(name: &str) -> String {
    fs::read_to_string(deploy(name)).unwrap()
}

/// What follows `start` on the lines that begin with it, without indentation.
fn after<'a>(text: &'a str, start: &'a str) -> Vec<&'a str> {
    let lines = text.lines().map(str::trim_start);
    lines.filter_map(|line| line.strip_prefix(start)).collect()
}

/// Reads a configuration with these variables.
fn parse(text: &str, variables: &[(&str, &str)]) -> Result<Config, Vec<Problem>> {
    let outside = Outside {
        variable: &|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        },
        directory: PathBuf::from("/etc/trueline"),
    };
    Config::parse(text, "trueline.toml", &outside)
}

/// The block `trueline.toml: |` of a ConfigMap.
fn configuration(manifest: &str) -> String {
    let (_, block) = manifest.split_once("  trueline.toml: |\n").unwrap();
    let lines = block.lines().take_while(|line| *line != "---");
    lines
        .map(|line| line.trim_start().to_owned() + "\n")
        .collect()
}

#[test]
fn the_configuration_in_each_manifest_is_sound_for_each_of_its_roles() {
    for (name, roles) in MANIFESTS {
        let manifest = text(&format!("kubernetes/{name}"));
        let given = after(&manifest, "- name: ");
        for role in roles {
            let verdicts = match role {
                Verdicts::Own => "own",
                Verdicts::None => "none",
                Verdicts::All => "all",
            };
            let variables = [
                ("KAFKA_BROKERS", "kafka:9092"),
                ("TRUELINE_INSTANCE", "trueline-0"),
                ("TRUELINE_VERDICTS", verdicts),
            ];
            assert!(variables.iter().all(|(v, _)| given.contains(v)), "{name}");
            assert!(manifest.contains(&format!("value: {verdicts}\n")), "{name}");
            let config = parse(&configuration(&manifest), &variables)
                .unwrap_or_else(|problems| panic!("{name}: {problems:#?}"));
            assert_eq!(config.state.verdicts, *role, "{name}");
            let mounted = config.state.directory.display().to_string();
            assert!(
                after(&manifest, "mountPath: ").contains(&&*mounted),
                "{name}: {mounted}"
            );
        }
    }
}

#[test]
fn the_configuration_of_the_package_is_refused_as_it_is_and_sound_once_uncommented() {
    let shipped = text("package/trueline.toml");
    let problems = parse(&shipped, &[]).expect_err("an inert file");
    assert!(
        problems.iter().any(|p| p.what.contains("[[source]]")),
        "{problems:?}"
    );
    let uncommented: String = shipped
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(rest) if !rest.starts_with(' ') => rest,
            _ => line,
        })
        .flat_map(|line| [line, "\n"])
        .collect();
    let config = parse(&uncommented, &[]).unwrap_or_else(|problems| panic!("{problems:#?}"));
    // Where the unit's `StateDirectory` is.
    assert_eq!(
        after(&text("systemd/trueline.service"), "StateDirectory="),
        ["trueline"]
    );
    assert_eq!(config.state.directory, PathBuf::from("/var/lib/trueline"));
}

#[test]
fn the_version_is_the_same_everywhere() {
    let version = env!("CARGO_PKG_VERSION");
    let changelog = text("package/changelog");
    assert!(
        changelog.starts_with(&format!("trueline ({version}-")),
        "{changelog}"
    );
    let chart = text("helm/trueline/Chart.yaml");
    assert_eq!(after(&chart, "appVersion: "), [format!("\"{version}\"")]);
    let compose = text("compose/compose.yml");
    assert_eq!(after(&compose, "image: trueline:"), [version]);
}

#[test]
fn user_port_and_probes_of_the_pods_are_those_of_the_image_and_the_program() {
    let image = text("docker/Dockerfile");
    let user = after(&image, "USER ")[0].split(':').next().unwrap();
    let port = after(&image, "EXPOSE ")[0];
    assert!(image.contains(&format!("TRUELINE_LISTEN=0.0.0.0:{port}")));
    for (name, roles) in MANIFESTS {
        let manifest = text(&format!("kubernetes/{name}"));
        let each = |start: &str, value: &str| {
            let found = after(&manifest, start);
            let expected = vec![value; roles.len()];
            assert_eq!(found, expected, "{name}: {start}");
        };
        each("runAsUser: ", user);
        each("runAsGroup: ", user);
        each("fsGroup: ", user);
        each("runAsNonRoot: ", "true");
        each("readOnlyRootFilesystem: ", "true");
        each("allowPrivilegeEscalation: ", "false");
        each("containerPort: ", port);
        each("value: 0.0.0.0:", port);
        let probes = after(&manifest, "path: ");
        assert_eq!(probes, ["/live", "/ready"].repeat(roles.len()), "{name}");
    }
    let server = Server::start(populated());
    for path in ["/live", "/ready"] {
        assert_ne!(server.get(path).status, 404, "{path}");
    }
}

#[test]
fn every_host_gives_a_process_longer_to_stop_than_it_takes_at_most() {
    let help = fs::read_to_string(deploy("../src/cli/run.rs")).unwrap();
    let longest =
        "env = \"TRUELINE_SHUTDOWN_TIMEOUT\", value_name = \"TIME\", default_value = \"30s\"";
    assert!(help.contains(longest), "the default has changed");
    for (name, key) in STOPS {
        let file = text(name);
        let found = after(&file, key);
        assert!(!found.is_empty(), "{name}");
        for time in found {
            let seconds: u64 = time.trim_end_matches('s').parse().unwrap();
            let given = Duration::from_secs(seconds);
            // 30 s for the engine and 10 s for open connections.
            assert!(given > Duration::from_secs(40), "{name}: {time}");
        }
    }
}
