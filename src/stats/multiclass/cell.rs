//! Names of cells in k dimensions, and how they nest.
//!
//! **Cubes** (`top_k`): coordinate i of z is in slice ⌊z_i·m⌋, the last slice closed; only cubes
//! that meet the chamber 1 ≥ z_1 ≥ … ≥ z_k ≥ 0, Σz ≤ 1 are ever named. (The paper's side is 1/(mK),
//! K·m slices; ours any m.)
//!
//! **Simplices** (`full`): m^(K−1) simplices of equal volume (Lee, Huang, Hassani, Dobriban 2022,
//! appendix 8.2.3; Stanley 1977 for hypersimplices). With x_i = m·(p_1 + … + p_i), i < K, the
//! simplex of probability vectors is 0 ≤ x_1 ≤ … ≤ x_{K−1} ≤ m. The hyperplanes on which some x_i
//! or x_i − x_j is an integer cut R^(K−1) into *alcoves*, each named by the floors ⌊x_i⌋ and the
//! order of the fractions {x_i}. Each alcove is {0 ≤ f_σ(1) ≤ … ≤ f_σ(K−1) ≤ 1} moved by the
//! floors, of volume 1/(K−1)!; the simplex is m^(K−1)/(K−1)! and its own faces are among the
//! hyperplanes, so it is the union of exactly m^(K−1) alcoves. The map from p to x is linear, hence
//! in p too all have the same volume.
//!
//! Every vector has exactly one cell, on faces and ties too: the name is a function of x. Equal
//! fractions are ordered by index, so x_i = x_{i+1} (a probability of 0) is on the side x_i ≤
//! x_{i+1} of the simplex; x_i = m has floor m − 1 and fraction 1, so the last cell is closed, and
//! the name is that of an alcove inside. Partial sums of floats do not fall, so rounding cannot
//! leave the simplex.
//!
//! Both nest: the hyperplanes of m are among those of 2m, and the parent's name follows from the
//! child's, by halving slices or floors and ordering first by their lowest bit.
//!
//! A name takes 2 bytes a coordinate (4 for simplices). With K = 1000 there are 2⁹⁹⁹ simplices
//! already at m = 2; a sample meets at most n of them, which is why cells are named and not
//! numbered.

use super::events::{Events, VectorView};

/// A cell's name. Names compare by their numbers, which gives every level one order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// Slice of each coordinate.
    Cube(Vec<u16>),
    /// Floors of x, and indices of x by ascending fraction.
    Simplex(Vec<u16>, Vec<u16>),
}

/// Most slices of an axis: what a name can hold.
pub const SLICES_MAX: u32 = 1 << 15;

impl Name {
    /// The cell of event `i` among `m` slices (cubes) or m^(K−1) simplices; 1 ≤ m ≤ [`SLICES_MAX`].
    pub fn of(events: &Events, i: usize, m: u32) -> Name {
        let z = events.point(i);
        match events.view {
            VectorView::TopK(_) => Name::cube(z, m),
            VectorView::Full => Name::simplex(z, m),
        }
    }

    /// The cube of a point of [0, 1]^k.
    pub fn cube(z: &[f64], m: u32) -> Name {
        let slice = |z: &f64| ((z * f64::from(m)) as u32).min(m - 1) as u16;
        Name::Cube(z.iter().map(slice).collect())
    }

    /// The simplex of a probability vector of K ≥ 2 entries.
    pub fn simplex(p: &[f64], m: u32) -> Name {
        let top = f64::from(m);
        let mut sum = 0.0;
        let (mut floors, mut fractions) = (Vec::new(), Vec::new());
        for p in &p[..p.len() - 1] {
            sum += p;
            let x = (sum * top).min(top);
            let floor = x.floor().min(top - 1.0);
            floors.push(floor as u16);
            fractions.push(x - floor);
        }
        let mut order: Vec<u16> = (0..floors.len() as u16).collect();
        order.sort_by(|&a, &b| fractions[a as usize].total_cmp(&fractions[b as usize]));
        Name::Simplex(floors, order)
    }

    /// The cell of half as many slices that holds this one.
    pub fn parent(&self) -> Name {
        let halves = |floors: &[u16]| floors.iter().map(|f| f >> 1).collect();
        match self {
            Name::Cube(slices) => Name::Cube(halves(slices)),
            Name::Simplex(floors, order) => {
                // {x/2} = ({⌊x⌋ mod 2} + {x})/2; the sort is stable, so {x} decides among equal
                // bits.
                let mut order = order.clone();
                order.sort_by_key(|&i| floors[i as usize] & 1);
                Name::Simplex(halves(floors), order)
            }
        }
    }
}
