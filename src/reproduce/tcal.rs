//! Lee, Huang, Hassani, Dobriban (2022): what debiasing is for (Figure 2), type II errors against bumps (Figures 3
//! and 4), the rate (Figure 5), sample splitting (Figure 7), Tables 1 to 3. The bumps are those of [`super::bumps`].
//!
//! Beside our default procedure stands the paper's adaptive one (all B scales, critical values of redrawn samples,
//! Bonferroni) through our estimators; at n = 5000 a table of its own has that of an independent program, 250 data sets.
//!
//! Figure 5: at each n the m at which the default test has power ½, by bisection on log m; its error m^{−s} against
//! n on logarithmic axes has slope −2s/(4s+1) in theory.

use super::bumps::{self, Curve, critical_values, line, rejects, statistics};
use super::{Cell, Effort, Row, Table};
use crate::stats::evaluation::{Critical, DiscreteMode, Options, Sharing, evaluate_scores};
use crate::stats::rng::Rng;
use std::path::Path;

const S: f64 = 0.6;
const RHO: f64 = 100.0;

/// Power of the reference and of the joint form at n = 5000, 250 data sets a point.
const REFERENCE: [(f64, f64, f64); 7] = [
    (40.0, 0.988, 0.992),
    (60.0, 0.580, 0.704),
    (80.0, 0.316, 0.412),
    (100.0, 0.144, 0.208),
    (130.0, 0.064, 0.108),
    (160.0, 0.052, 0.088),
    (200.0, 0.056, 0.076),
];

/// The tables; Tables 1 to 3 only where the folder of data is given.
pub fn run(effort: &Effort) -> Result<Vec<Table>, String> {
    let mut tables = vec![bumps::debiasing(effort)];
    tables.extend((0..3).map(|at| bumps::compared(effort, at)));
    tables.extend([power(effort), rate(effort), bumps::detection(effort)]);
    tables.extend((0..2).map(|at| bumps::splitting(effort, at)));
    if let Some(data) = &effort.data {
        tables.push(decisions(&data.join("tcal"))?);
    }
    Ok(tables)
}

fn power(effort: &Effort) -> Table {
    let n = 5000;
    let sets = effort.data_sets as usize;
    let replicates = if effort.quick { 1000 } else { 3000 };
    let mut rng = Rng::new(effort.seed);
    let critical = critical_values(&mut rng, n, replicates);
    let mut rows = Vec::new();
    for (m, reference, joint) in REFERENCE {
        let mut hits = [0; 2];
        for _ in 0..sets {
            let data = Curve::new(m, S, RHO).sample(&mut rng, n);
            let paper = statistics(&data).iter().zip(&critical).any(|(t, c)| t > c);
            for (hit, rejected) in hits.iter_mut().zip([rejects(&data), paper]) {
                *hit += usize::from(rejected);
            }
        }
        // Three errors of the 250 data sets beside.
        let noise = |p: f64| 3.0 * (p * (1.0 - p) / 250.0).sqrt();
        rows.push(Row {
            label: format!("{m}"),
            cells: vec![
                Cell::share(hits[0], sets).beside(joint, noise(joint)),
                Cell::share(hits[1], sets).beside(reference, noise(reference)),
            ],
        });
    }
    Table {
        title: "T-Cal, adaptive tests: power against m bumps, n = 5000".to_owned(),
        note: format!(
            "{sets} data sets a point; beside: an independent program, 250 data sets; type II error is 1 less this"
        ),
        x: "m".to_owned(),
        columns: vec!["default".to_owned(), "paper's procedure".to_owned()],
        rows,
    }
}

fn rate(effort: &Effort) -> Table {
    let sizes: &[usize] = if effort.quick {
        &[1000, 2000, 4000, 8000]
    } else {
        &[1000, 2000, 4000, 8000, 16_000, 32_000]
    };
    let sets = if effort.quick { 60 } else { 400 };
    let mut rng = Rng::new(effort.seed ^ 5);
    let mut points = Vec::new();
    for &n in sizes {
        let (mut low, mut high) = (4f64.ln(), 400f64.ln());
        for _ in 0..8 {
            let middle = 0.5 * (low + high);
            let hits = (0..sets)
                .filter(|_| rejects(&Curve::new(middle.exp(), S, RHO).sample(&mut rng, n)))
                .count();
            if 2 * hits > sets {
                low = middle
            } else {
                high = middle
            }
        }
        points.push(((n as f64).ln(), -S * 0.5 * (low + high)));
    }
    let (slope, error) = line(&points);
    let mut rows: Vec<Row> = (sizes.iter().zip(&points))
        .map(|(n, p)| Row {
            label: format!("error at n = {n}"),
            cells: vec![Cell::plain(p.1.exp())],
        })
        .collect();
    let theory = -2.0 * S / (4.0 * S + 1.0);
    rows.push(Row {
        label: "slope".to_owned(),
        cells: vec![
            Cell {
                error,
                ..Cell::plain(slope)
            }
            .beside(theory, 0.05),
        ],
    });
    Table {
        title: "T-Cal, Figure 5: error that is found with power one half".to_owned(),
        note: format!(
            "{sets} data sets a step of bisection; beside the slope: −2s/(4s+1), within 0.05"
        ),
        x: String::new(),
        columns: vec!["m^(−s)".to_owned()],
        rows,
    }
}

/// Network and method, published decision and ECE in per cent (15 cells, the last closed).
const TABLES: [(&str, f64, bool); 36] = [
    ("cifar10_densenet121.none", 2.0175196149395727, true),
    ("cifar10_densenet121.platt", 2.3214901454033723, true),
    ("cifar10_densenet121.poly", 1.4838999407692124, true),
    ("cifar10_densenet121.isotonic", 1.009087507861, true),
    ("cifar10_densenet121.histogram", 0.46837826843228053, true),
    ("cifar10_densenet121.scalebin", 1.9426569478419857, true),
    ("cifar10_resnet50.none", 2.232600407291421, true),
    ("cifar10_resnet50.platt", 1.7808544271546105, true),
    ("cifar10_resnet50.poly", 1.2889774994498164, true),
    ("cifar10_resnet50.isotonic", 0.6211629938605954, true),
    ("cifar10_resnet50.histogram", 0.7325671922343143, true),
    ("cifar10_resnet50.scalebin", 1.2073204467176375, true),
    ("cifar10_vgg19_bn.none", 2.127657023509317, true),
    ("cifar10_vgg19_bn.platt", 1.705697075610224, true),
    ("cifar10_vgg19_bn.poly", 0.8708631592723625, false),
    ("cifar10_vgg19_bn.isotonic", 1.1286431298691206, false),
    ("cifar10_vgg19_bn.histogram", 1.1268277971046892, true),
    ("cifar10_vgg19_bn.scalebin", 1.6754907408507218, true),
    ("cifar100_mobilenetv2_x1_4.none", 11.873734320796634, true),
    ("cifar100_mobilenetv2_x1_4.platt", 1.401379847339081, false),
    ("cifar100_mobilenetv2_x1_4.poly", 1.693393420454917, true),
    (
        "cifar100_mobilenetv2_x1_4.isotonic",
        1.761309562903271,
        false,
    ),
    (
        "cifar100_mobilenetv2_x1_4.histogram",
        1.6543962518235868,
        true,
    ),
    (
        "cifar100_mobilenetv2_x1_4.scalebin",
        1.871796871489157,
        true,
    ),
    ("cifar100_resnet56.none", 15.20037027248073, true),
    ("cifar100_resnet56.platt", 1.8384978809422776, false),
    ("cifar100_resnet56.poly", 1.9053407900096913, true),
    ("cifar100_resnet56.isotonic", 2.3251776816869105, true),
    ("cifar100_resnet56.histogram", 2.3468318651105347, true),
    ("cifar100_resnet56.scalebin", 1.4456013320963332, true),
    ("cifar100_shufflenetv2_x2_0.none", 9.076073744291303, true),
    (
        "cifar100_shufflenetv2_x2_0.platt",
        1.3678958751545456,
        false,
    ),
    ("cifar100_shufflenetv2_x2_0.poly", 1.8084101066739215, false),
    (
        "cifar100_shufflenetv2_x2_0.isotonic",
        1.3781289651591822,
        false,
    ),
    (
        "cifar100_shufflenetv2_x2_0.histogram",
        2.881632252272464,
        true,
    ),
    (
        "cifar100_shufflenetv2_x2_0.scalebin",
        1.6674739012726283,
        false,
    ),
];

fn decisions(folder: &Path) -> Result<Table, String> {
    let mut rows = Vec::new();
    for (name, ece, reject) in TABLES {
        let path = folder.join(format!("{name}.csv"));
        let place = |e: String| format!("cannot read {} ({e})", path.display());
        let file = std::fs::File::open(&path).map_err(|e| place(e.to_string()))?;
        let sample = crate::decode::scores::read(name, file).map_err(|e| place(e.to_string()))?;
        let sample = sample
            .plain()
            .ok_or_else(|| place("it has weights".to_owned()))?;
        let binned = name.ends_with(".histogram") || name.ends_with(".scalebin");
        let mut options = Options {
            discrete: if binned {
                DiscreteMode::On
            } else {
                DiscreteMode::Off
            },
            ..Options::default()
        };
        let default = evaluate_scores(&sample, &options);
        options.tcal.critical = Critical::MonteCarlo { replicates: 3000 };
        options.tcal.sharing = Sharing::Bonferroni;
        let paper = evaluate_scores(&sample, &options);
        let (Some(default), Some(paper)) = (default, paper) else {
            return Err(place("no events".to_owned()));
        };
        let decision =
            |r: bool| Cell::plain(f64::from(u8::from(r))).beside(f64::from(u8::from(reject)), 0.0);
        let p = default
            .discrete
            .as_ref()
            .map_or(default.tcal.p_value, |d| d.p_value);
        rows.push(Row {
            label: name.trim_start_matches("cifar").to_owned(),
            cells: vec![
                decision(paper.reject),
                Cell::plain(p),
                Cell::plain(100.0 * default.ece_l1).beside(ece, 1e-5),
            ],
        });
    }
    let columns = [
        "rejects (paper's procedure)",
        "p of the default",
        "ECE, per cent",
    ];
    Ok(Table {
        title: "T-Cal, Tables 1 to 3: networks on CIFAR".to_owned(),
        note: "beside: decisions of the authors' program at 0.05, ECE over 15 cells, last closed"
            .to_owned(),
        x: "CIFAR network.method".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
    })
}
