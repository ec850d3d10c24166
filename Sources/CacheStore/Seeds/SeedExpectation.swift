// What a route expects of seeds, as far as a folder needs to know it: a name, and who looks into a body.

package import HTTPCaching

/// What a seed must be to answer for a route.
package struct SeedExpectation: Sendable {
    /// The head of a seed, and a function that reads on in its body, which gives nothing at its end.
    package typealias Inspection = @Sendable (_ head: StoredHead, _ next: () throws -> [UInt8]) throws -> String?

    /// Equal only for expectations that come to the same.
    package let name: String
    /// Why a seed is something else, such as `begins with "<!do"`; nil where it is what is expected. It runs on an I/O
    /// thread.
    let inspect: Inspection

    package init(name: String, inspect: @escaping Inspection) {
        self.name = name
        self.inspect = inspect
    }

    /// Why a response at hand as a whole is something else; nil where it is what is expected. Any thread.
    package func mismatch(_ head: StoredHead, _ content: [UInt8]) -> String? {
        var rest = content
        // Nothing is read that could fail.
        let found = try? inspect(head) {
            defer { rest = [] }
            return rest
        }
        return found ?? nil
    }
}

/// What an inspection has found of a file, as long as the file stays as it was.
struct SeedVerdict {
    let stamp: SeedStamp
    /// The head that it had: its fields say how the body is coded.
    let head: StoredHead
    let found: String?
}
