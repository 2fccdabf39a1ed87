//! A fitted map, whatever its family.

use super::beta::Beta;
use super::isotonic::{Block, Isotonic};
use super::logistic::Logistic;
use super::point::Point;
use super::unfit::Unfit;

/// The families, from stiff to free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Method {
    /// Intercept and slope on the log-odds.
    Logistic,
    /// Two slopes and a constant.
    Beta,
    /// Any rising function.
    Isotonic,
}

impl Method {
    /// All, from stiff to free.
    pub const ALL: [Method; 3] = [Method::Logistic, Method::Beta, Method::Isotonic];

    /// Its name, as in JSON and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Logistic => "logistic",
            Method::Beta => "beta",
            Method::Isotonic => "isotonic",
        }
    }
}

/// A fitted map.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Map {
    /// Intercept and slope on the log-odds.
    Logistic(Logistic),
    /// Two slopes and a constant.
    Beta(Beta),
    /// Any rising function.
    Isotonic(Isotonic),
}

impl Map {
    /// Fits points in ascending order of score.
    pub fn fit(method: Method, points: &[Point]) -> Result<Map, Unfit> {
        let (n, y) = totals(points);
        if y <= 0.0 || y >= n {
            return Err(Unfit::OneOutcome);
        }
        match method {
            Method::Isotonic => Isotonic::fit(points).map(Map::Isotonic),
            Method::Beta => Beta::fit(points).map(Map::Beta),
            Method::Logistic => match Logistic::fit(points)? {
                falls if falls.slope <= 0.0 => Err(Unfit::Reversed),
                rises => Ok(Map::Logistic(rises)),
            },
        }
    }

    /// The family of the map.
    pub fn method(&self) -> Method {
        match self {
            Map::Logistic(_) => Method::Logistic,
            Map::Beta(_) => Method::Beta,
            Map::Isotonic(_) => Method::Isotonic,
        }
    }

    /// The recalibrated score of a score in [0, 1]; inside (0, 1).
    pub fn rate(&self, z: f64) -> f64 {
        match self {
            Map::Logistic(m) => m.rate(z),
            Map::Beta(m) => m.rate(z),
            Map::Isotonic(m) => m.rate(z),
        }
    }
}

/// All three families, fitted to the same events.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Fits {
    /// Number of events.
    pub n: u64,
    /// Number of positive outcomes.
    pub positives: u64,
    /// The maps, in the order of [`Method::ALL`].
    pub maps: [Result<Map, Unfit>; 3],
}

impl Fits {
    /// Fits points in ascending order of score.
    pub fn of(points: &[Point]) -> Fits {
        let (n, y) = totals(points);
        Fits {
            n: n as u64,
            positives: y as u64,
            maps: Method::ALL.map(|method| Map::fit(method, points)),
        }
    }

    /// The map of a family.
    pub fn map(&self, method: Method) -> Option<&Map> {
        self.maps[method as usize].as_ref().ok()
    }

    /// Whether each map is of its family, and an isotonic one has blocks.
    pub fn are_whole(&self) -> bool {
        let whole = |(map, method): (&Result<Map, Unfit>, Method)| match map {
            Ok(Map::Isotonic(m)) if m.blocks.is_empty() => false,
            Ok(map) => map.method() == method,
            Err(_) => true,
        };
        self.maps.iter().zip(Method::ALL).all(whole)
    }

    /// Heap bytes held.
    pub fn bytes(&self) -> usize {
        let bytes = |m: &Result<Map, Unfit>| match m {
            Ok(Map::Isotonic(m)) => size_of_val::<[Block]>(&m.blocks),
            _ => 0,
        };
        self.maps.iter().map(bytes).sum()
    }
}

fn totals(points: &[Point]) -> (f64, f64) {
    let add = |(n, y): (f64, f64), p: &Point| (n + p.n, y + p.y);
    points.iter().fold((0.0, 0.0), add)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(of: impl Fn(f64) -> f64) -> Vec<Point> {
        let one = |i: i32| {
            let z = (f64::from(i) + 0.5) / 64.0;
            Point {
                z,
                n: 100.0,
                y: 100.0 * of(z),
            }
        };
        (0..64).map(one).collect()
    }

    #[test]
    fn each_family_finds_the_map_that_made_the_outcomes() {
        let truth = Logistic {
            intercept: 0.5,
            slope: 0.4,
        };
        let fitted = Map::fit(Method::Logistic, &points(|z| truth.rate(z)));
        let Ok(Map::Logistic(found)) = fitted else {
            panic!("{fitted:?}");
        };
        assert!((found.intercept - 0.5).abs() < 1e-9 && (found.slope - 0.4).abs() < 1e-9);
        let truth = Beta {
            a: 0.7,
            b: 1.6,
            c: -0.3,
        };
        let Ok(Map::Beta(found)) = Map::fit(Method::Beta, &points(|z| truth.rate(z))) else {
            panic!("not fitted");
        };
        let off = [found.a - 0.7, found.b - 1.6, found.c + 0.3];
        assert!(off.iter().all(|d| d.abs() < 1e-8), "{off:?}");
        let free = Map::fit(Method::Isotonic, &points(|z| z * z)).unwrap();
        assert!((free.rate(0.3) - 0.09).abs() < 1e-3);
    }

    #[test]
    fn no_map_returns_certainty() {
        let steep = [
            Map::Logistic(Logistic {
                intercept: 0.0,
                slope: 2.5,
            }),
            Map::Beta(Beta {
                a: 30.0,
                b: 30.0,
                c: 0.0,
            }),
            Map::fit(Method::Isotonic, &points(|z| f64::from(u8::from(z > 0.5)))).unwrap(),
        ];
        for map in steep {
            let (low, high) = (map.rate(0.0), map.rate(1.0));
            assert!(
                low > 0.0 && high < 1.0 && low < high,
                "{map:?}: {low} {high}"
            );
            let rates: Vec<f64> = (0..=100).map(|i| map.rate(f64::from(i) / 100.0)).collect();
            assert!(rates.is_sorted(), "{map:?}");
        }
    }

    #[test]
    fn a_beta_map_that_would_fall_at_one_end_is_flat_there() {
        // Rates that fall with −ln(1−z) at the top: b would be negative.
        let made = points(|z| {
            let x = 0.9 * z.ln() + 0.4 * (1.0 - z).ln();
            1.0 / (1.0 + (-x).exp())
        });
        let Ok(Map::Beta(found)) = Map::fit(Method::Beta, &made) else {
            panic!("not fitted");
        };
        assert_eq!(found.b, 0.0);
        assert!(found.a > 0.0);
    }

    #[test]
    fn what_cannot_be_fitted_says_why() {
        let all = points(|_| 1.0);
        let refused = Fits::of(&all).maps.map(Result::err);
        assert_eq!(refused, [Some(Unfit::OneOutcome); 3]);
        let parted = points(|z| f64::from(u8::from(z > 0.5)));
        assert_eq!(Map::fit(Method::Logistic, &parted), Err(Unfit::Parted));
        assert_eq!(Map::fit(Method::Beta, &parted), Err(Unfit::Parted));
        let falls = points(|z| 1.0 - z);
        for method in Method::ALL {
            assert_eq!(Map::fit(method, &falls), Err(Unfit::Reversed), "{method:?}");
        }
        let same = [Point {
            z: 0.3,
            n: 9.0,
            y: 4.0,
        }];
        assert_eq!(Map::fit(Method::Isotonic, &same), Err(Unfit::Reversed));
        assert_eq!(Map::fit(Method::Logistic, &same), Err(Unfit::Alike));
    }
}
