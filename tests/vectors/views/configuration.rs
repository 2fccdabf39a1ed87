//! Configuration of vector views.

use trueline::config::Config;
use trueline::config::bounds::{COORDINATE_BYTES, MemoryBound};
use trueline::config::value::Outside;

fn configuration(views: &str, model: &str, source: &str, rest: &str) -> Result<Config, String> {
    let text = format!(
        "version = 1\n[kafka]\nbrokers = \"b:9092\"\n[[source]]\ntopics = [\"t\"]\n[source.fields]\n\
         probabilities = \"p\"\noutcome = \"y\"\n{source}[[model]]\nname = \"m\"\nviews = {views}\n{model}{rest}"
    );
    let outside = Outside {
        variable: &|_| None,
        directory: ".".into(),
    };
    Config::parse(&text, "t.toml", &outside).map_err(|problems| {
        let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
        all.join("\n")
    })
}

#[test]
fn what_cannot_be_kept_live_is_refused_with_the_reason() {
    let four = "classes = [\"a\", \"b\", \"c\", \"d\"]\n";
    let good = "[\"top_label\", \"top_k:2\", \"full\"]";
    let config = configuration(good, four, "", "").unwrap();
    let bound = MemoryBound::of(&config);
    assert!(bound.vector_bytes > 0 && bound.state() > bound.vector_bytes);
    let fewer = configuration(good, four, "", "[limits]\nvector_cells_max = 100\n").unwrap();
    assert!(MemoryBound::of(&fewer).vector_bytes < bound.vector_bytes);
    let none = configuration("[\"top_label\"]", four, "", "").unwrap();
    assert_eq!(MemoryBound::of(&none).vector_bytes, 0);
    let thirteen: Vec<String> = (0..13).map(|k| format!("\"{k}\"")).collect();
    let thirteen = format!("classes = [{}]\n", thirteen.join(", "));
    let joined =
        "id = \"i\"\n[source.outcomes]\ntopics = [\"o\"]\nmaturity = \"1h\"\npending_max = 1000\n";
    let scalars = configuration("[\"top_label\"]", four, joined, "").unwrap();
    let vectors = configuration(good, four, joined, "").unwrap();
    let [fewer, more] = [&scalars, &vectors].map(|c| MemoryBound::of(c).pending_bytes);
    // Four probabilities for `full`, which serve `top_k:2` too.
    let waiting = vectors.plan.joins[0].pending_max as u64;
    assert_eq!(more - fewer, 4 * COORDINATE_BYTES * waiting);
    // Cells of weighted events are larger.
    let weighted = configuration(good, four, "weight = \"w\"\n", "").unwrap();
    assert!(MemoryBound::of(&weighted).vector_bytes > 2 * bound.vector_bytes);
    assert!(configuration(good, four, "", "[state]\ntopic = \"moves\"\n").is_ok());
    let cases = [
        (
            "[\"top_label\", \"full\"]",
            "",
            "",
            "",
            "needs to know the classes",
        ),
        (
            "[\"top_label\", \"full\"]",
            thirteen.as_str(),
            "",
            "",
            "too many coordinates",
        ),
        (
            "[\"top_label\", \"top_k:5\"]",
            four,
            "",
            "",
            "too many coordinates",
        ),
        ("[\"full\"]", four, "", "", "no view of single scores"),
        (
            "[\"top_label\", \"kernel\"]",
            four,
            "weight = \"w\"\n",
            "",
            "events of this model are weighted",
        ),
    ];
    for (views, model, source, rest, wanted) in cases {
        let told = configuration(views, model, source, rest).unwrap_err();
        assert!(told.contains(wanted), "{wanted}: {told}");
    }
}
