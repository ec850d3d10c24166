// What a demo answer gets wrong: its entity tag, its status, its length, or what caches go by.

import DemoMode
import DownloadCore
import HTTPWire
import Policies

/// The wrongs of one answer, as its draw has them; it remembers those that had something to act on.
struct DemoMisconduct {
    private var draw: DemoDraw

    init(_ draw: DemoDraw) { self.draw = draw }

    /// The value of Drydock-Demo.
    var said: String { draw.fieldValue }

    /// Whether the answer gets that wrong; if so, it is said.
    mutating func commits(_ kind: Misbehaviour.Kind) -> Bool {
        guard draw.misbehaviour(kind) != nil else { return false }
        draw.misbehaved.append(kind)
        return true
    }

    /// Changes the entity tag that the conditions of the request are compared with.
    mutating func retag(_ fields: inout Fields, _ method: Method) {
        guard let tag = fields.first(.etag) else { return }
        if commits(.etagFlips) || method == .head && commits(.headETag) { fields.set(.etag, draw.wrongTag(for: tag)) }
    }

    /// - Parameter now: seconds since 1970.
    mutating func spoil(_ answer: inout Answer, _ method: Method, now: Int64) {
        let isSuccess = 200..<300 ~= answer.head.status
        if method == .head, let length = answer.length, commits(.headLength) { answer.length = length + 1 }
        if method == .head, isSuccess, commits(.headStatus) {
            answer.head.status = 404
            answer.head.reason = ReasonPhrase.reason(404)
        }
        if answer.head.status == 304, answer.head.fields.hasValidator, commits(.bare304) {
            answer.head.fields.remove(.etag)
            answer.head.fields.remove(.lastModified)
        }
        if commits(.varyStar) { answer.head.fields.set(.vary, "*") }
        if let shift = draw.misbehaviour(.date), commits(.date) {
            answer.head.fields.set(.date, HTTPDate.format(now + shift.seconds))
        }
        if let age = draw.misbehaviour(.age), commits(.age) { answer.head.fields.set(.age, String(age.seconds)) }
    }
}

extension Fields {
    fileprivate var hasValidator: Bool { contains(.etag) || contains(.lastModified) }
}

extension RequestHead {
    /// Without the conditions that a 304 may come of.
    var unconditional: RequestHead {
        var head = self
        head.fields.remove(.ifNoneMatch)
        head.fields.remove(.ifModifiedSince)
        return head
    }
}
