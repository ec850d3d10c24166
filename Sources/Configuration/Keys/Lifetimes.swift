// Durations of whole seconds as text, for uses outside of a configuration file.

/// Whole seconds with a unit: `59s`, `2m`, `2h`, `7d`.
package enum Lifetimes {
    /// The error in a text, and what to write instead.
    package struct Malformed: Error, Equatable, CustomStringConvertible {
        package let description: String
    }

    /// Seconds: a number and one of the units `s`, `m`, `h` and `d`, at most 36500d.
    /// - Throws: ``Malformed`` where there is no unit, an unknown one, or a part of a second.
    package static func seconds(_ text: String) throws(Malformed) -> Int64 {
        do throws(ScalarProblem) {
            return Int64(try Units.lifetime(text) / 1_000_000_000)
        } catch {
            throw Malformed(description: error.message)
        }
    }

    /// The shortest text that is exactly so many seconds, in one unit.
    package static func text(_ seconds: Int64) -> String {
        for (unit, length) in [("d", Int64(86_400)), ("h", 3600), ("m", 60)] where seconds != 0 && seconds % length == 0
        {
            return "\(seconds / length)\(unit)"
        }
        return "\(seconds)s"
    }
}

/// Sizes as text: `64KiB`, `256MiB`, `10GiB`.
package enum Sizes {
    /// Bytes.
    /// - Throws: ``Lifetimes/Malformed`` where there is no unit, or an unknown one.
    package static func bytes(_ text: String) throws(Lifetimes.Malformed) -> Int {
        do throws(ScalarProblem) {
            return Int(clamping: try Units.size(text))
        } catch {
            throw Lifetimes.Malformed(description: error.message)
        }
    }
}
