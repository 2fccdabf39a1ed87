//! Runbooks and the guide are served under the names that notifications link.

use crate::support::published::populated;
use crate::support::server::Server;

#[test]
fn every_runbook_is_served_under_its_name() {
    let server = Server::start(populated());
    let list = server.get("/runbooks");
    assert_eq!(list.status, 200);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/runbooks");
    let mut pages = 0;
    for entry in std::fs::read_dir(folder).expect("the runbooks") {
        let path = entry.expect("a file").path();
        let name = path.file_stem().and_then(|n| n.to_str()).expect("a name");
        assert!(
            list.body.contains(&format!("href=/runbooks/{name}>")),
            "{name}"
        );
        // The link of a notification ends in `.md`, as in a folder of a repository.
        for link in [format!("/runbooks/{name}"), format!("/runbooks/{name}.md")] {
            let page = server.get(&link);
            assert_eq!(page.status, 200, "{link}");
            for heading in ["What it means", "Check", "Fix"] {
                assert!(page.body.contains(&format!(">{heading}</h2>")), "{link}");
            }
            let policy = "content-security-policy: default-src 'none'";
            assert!(page.head.contains(policy), "{link}");
        }
        pages += 1;
    }
    assert!(pages > 20);
    let waiting = server.get("/runbooks/TruelineAlertsLost").body;
    let links = "<a href=\"/runbooks/TruelineAlertsWaiting\">TruelineAlertsWaiting</a>";
    assert!(waiting.contains(links), "{waiting}");
    let guide = server.get("/guide/alerts");
    assert!(guide.status == 200 && guide.body.contains("<h2 id=\"send-alerts-to-people\">"));
    assert_eq!(server.get("/guide/nothing").status, 404);
    let unknown = server.get("/runbooks/TruelineNothing");
    assert_eq!(unknown.status, 404);
    assert!(unknown.body.contains("see /runbooks"), "{}", unknown.body);
}
