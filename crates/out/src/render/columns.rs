//! The columns that grains can be coloured by.

use barchan_base::column::{Column, Entry, Kind};
use barchan_sim::state::Particles;
use glam::{Mat3, Vec3, Vec4};

/// One number a particle.
pub struct Values {
    /// The numbers.
    pub numbers: Vec<f32>,
    /// Their unit, `"1"` where there is none.
    pub unit: String,
}

/// The numbers of column `name`: a column of the frame (vectors by their length), `speed`, or `height` along `up`.
///
/// # Errors
/// If there is no such column, with the names that there are.
pub fn values(particles: &Particles, up: Vec3, name: &str) -> Result<Values, String> {
    let (numbers, unit): (Vec<f32>, &str) = match name {
        "speed" | "velocity" => (
            particles.velocity.iter().map(|v| v.length()).collect(),
            "m/s",
        ),
        "height" => (particles.position.iter().map(|p| p.dot(up)).collect(), "m"),
        "radius" => (particles.radius.clone(), "m"),
        "mass" => (particles.mass.clone(), "kg"),
        "material" => (
            particles.material.iter().map(|m| f32::from(*m)).collect(),
            "1",
        ),
        "wetness" => (particles.wetness.clone(), "1"),
        "id" => (particles.id.iter().map(|id| *id as f32).collect(), "1"),
        _ => match particles
            .extra
            .iter()
            .find(|column| column.spec.name == name)
        {
            Some(column) => (numbers(column, particles.len()), column.spec.unit),
            None => return Err(unknown(particles, name)),
        },
    };
    Ok(Values {
        numbers,
        unit: unit.to_owned(),
    })
}

fn unknown(particles: &Particles, name: &str) -> String {
    let extra = particles.extra.iter().map(|column| column.spec.name);
    let common = [
        "speed", "height", "radius", "mass", "wetness", "material", "id",
    ];
    let names: Vec<&str> = common.into_iter().chain(extra).collect();
    format!(
        "there is no column \"{name}\" to colour by; there are {}",
        names.join(", ")
    )
}

fn numbers(column: &Column, len: usize) -> Vec<f32> {
    fn each<T: Entry>(column: &Column, len: usize, number: impl Fn(T) -> f32) -> Vec<f32> {
        (0..len).map(|i| number(column.get(i))).collect()
    }
    match column.spec.kind {
        Kind::F32 => each(column, len, |x: f32| x),
        Kind::F64 => each(column, len, |x: f64| x as f32),
        Kind::U16 => each(column, len, f32::from as fn(u16) -> f32),
        Kind::U32 => each(column, len, |x: u32| x as f32),
        Kind::U64 => each(column, len, |x: u64| x as f32),
        Kind::Vec3 => each(column, len, |x: Vec3| x.length()),
        Kind::Vec4 => each(column, len, |x: Vec4| x.length()),
        Kind::Mat3 => each(column, len, |x: Mat3| {
            x.to_cols_array()
                .iter()
                .map(|part| part * part)
                .sum::<f32>()
                .sqrt()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barchan_base::column::ColumnSpec;

    #[test]
    fn every_kind_of_column_gives_numbers() {
        let mut particles = Particles::default();
        let specs = [
            ("heat", Kind::F64),
            ("spin", Kind::Vec3),
            ("phase", Kind::U16),
            ("strain", Kind::Mat3),
        ];
        for (name, kind) in specs {
            particles.extra.push(Column::zeros(
                ColumnSpec {
                    name,
                    unit: "K",
                    kind,
                },
                0,
            ));
        }
        particles.resize(2);
        particles.velocity[1] = Vec3::new(3.0, 0.0, 4.0);
        particles.wetness[1] = 0.25;
        particles.extra[0].set(1, 300.0f64);
        particles.extra[1].set(1, Vec3::new(0.0, 2.0, 0.0));
        particles.extra[3].set(1, Mat3::from_diagonal(Vec3::new(2.0, 2.0, 1.0)));
        for (name, expected) in [
            ("speed", 5.0),
            ("wetness", 0.25),
            ("heat", 300.0),
            ("spin", 2.0),
            ("phase", 0.0),
            ("strain", 3.0),
        ] {
            let last = values(&particles, Vec3::Y, name).unwrap().numbers[1];
            assert!((last - expected).abs() < 1e-6, "{name}: {last}");
        }
        let wrong = values(&particles, Vec3::Y, "sped").err().unwrap();
        assert!(
            wrong.contains("\"sped\"") && wrong.contains("heat"),
            "{wrong}"
        );
    }
}
