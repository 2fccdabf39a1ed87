//! What the file says of vector views reaches the plan and the bound of memory, and what cannot be
//! kept live is refused with the reason.

use trueline::config::Config;
use trueline::config::bounds::{COORDINATE_BYTES, MemoryBound};
use trueline::config::value::Outside;
use trueline::stats::kernel::window::KernelOptions;

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

#[test]
fn keys_reach_the_plan_and_the_bound_and_what_cannot_be_kept_is_refused() {
    // More classes than any view of cells can have.
    let names: Vec<String> = (0..30).map(|k| format!("\"{k}\"")).collect();
    let classes = format!("classes = [{}]\n", names.join(", "));
    let good = "[\"top_label\", \"kernel\"]";
    let plain = configuration(good, &classes, "", "").unwrap();
    assert_eq!(plain.plan.models[0].judge.kernel, KernelOptions::default());
    let own = "[model.kernel]\nsample = 1000\nbandwidth = 0.3\nfeatures = 16\nseed = 4\n";
    let larger = configuration(good, &classes, "", own).unwrap();
    let want = KernelOptions {
        sample: 1000,
        nu: Some(0.3),
        features: 16,
        seed: 4,
    };
    assert_eq!(larger.plan.models[0].judge.kernel, want);
    let bytes = |c: &Config| MemoryBound::of(c).vector_bytes;
    assert!(bytes(&larger) > bytes(&plain) && bytes(&plain) > 0);
    assert_eq!(
        bytes(&configuration("[\"top_label\"]", &classes, "", own).unwrap()),
        { bytes(&configuration("[\"top_label\"]", &classes, "", "").unwrap()) }
    );
    let cases = [
        (good, "", "", "needs to know the classes"),
        (
            good,
            classes.as_str(),
            "[model.kernel]\nfeatures = 16\n",
            "without `bandwidth`",
        ),
        (good, &classes, "[model.kernel]\nsample = 1\n", "sample"),
        ("[\"kernel\"]", &classes, "", "no view of single scores"),
    ];
    let moving = configuration(good, &classes, "", "[state]\ntopic = \"moves\"\n");
    assert!(moving.is_ok());
    // What waits for outcomes waits whole: 21 entries of 32 bytes for the vector and its rank.
    let joined =
        "id = \"i\"\n[source.outcomes]\ntopics = [\"o\"]\nmaturity = \"1h\"\npending_max = 10000\n";
    let waits = |views: &str| {
        let config = configuration(views, &classes, joined, "").unwrap();
        let (join, bound) = (&config.plan.joins[0], MemoryBound::of(&config));
        (join.pending_max as u64, bound.pending_bytes)
    };
    let ((most, scalar), (_, whole)) = (waits("[\"top_label\"]"), waits(good));
    assert_eq!(whole - scalar, most * 21 * COORDINATE_BYTES);
    for (views, model, rest, wanted) in cases {
        let told = configuration(views, model, "", rest).unwrap_err();
        assert!(told.contains(wanted), "{wanted}: {told}");
    }
}
