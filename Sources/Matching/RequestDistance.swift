// How far a request is from what a rule asks of it, so that the nearest rules can be told of.

extension RequestCondition {
    /// How far a request is from what is asked: 0 where all clauses hold, and the more, the less alike they are. Only the
    /// order of such numbers means something.
    package func distance(_ request: RequestParts) -> Int {
        clauses.reduce(0) { $0 + ($1.holds(request) ? 0 : $1.distance(request)) }
    }
}

extension RequestClause {
    /// Of a clause that does not hold, in hundredths. The path says the most about which rule was meant.
    fileprivate func distance(_ request: RequestParts) -> Int {
        switch self {
        case .method, .onlyQuery: return 50
        case .path(let test): return 3 * test.distance([request.path])
        case .parameter(_, let test), .query(_, let test), .field(_, let test), .cookie(_, let test):
            return test.distance(values(request))
        case .body:
            guard case .whole(let body) = request.body, !body.bytes.isEmpty else { return 100 }
            return 50
        }
    }
}

extension TextTest {
    /// The share of the nearest value that would have to change, in hundredths; half for a test that says nothing of how
    /// near a value is, and all where there is no value.
    fileprivate func distance(_ values: [String]) -> Int {
        if values.isEmpty { return 100 }
        let wanted: [String]
        switch self {
        case .equals(let text): wanted = [text]
        case .oneOf(let texts): wanted = texts
        default: return 50
        }
        // A request may have many values, and a rule many texts.
        let shares = values.prefix(4).flatMap { value in
            wanted.prefix(4).map { TextDistance.between(value.utf8, $0.utf8) }
        }
        return shares.min() ?? 100
    }
}
