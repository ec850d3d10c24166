// When an indicator is shown and when it goes: a value that looks and times change, and that answers with what to do.

/// Busy is told as soon as work begins, and idle when none is left, but no sooner than a minimum time after busy. What
/// begins and ends between two looks is told, too.
struct ActivityEdges {
    enum Step: Equatable {
        case tell(Activity)
        /// Look again when somebody rings, and at this time, where there is one.
        case wait(until: Duration?)
    }

    private let minimum: Duration
    private var told: Activity?
    /// How often work had begun when busy was told, or at a later look.
    private var beginnings: UInt64 = 0
    private var busySince = Duration.zero

    init(minimum: Duration) { self.minimum = minimum }

    /// - Parameters:
    ///   - isBusy: whether something is under way.
    ///   - beginnings: how often something began where there was nothing; it never becomes less.
    ///   - now: it never becomes less either.
    mutating func look(isBusy: Bool, beginnings: UInt64, now: Duration) -> Step {
        let hasBegun = beginnings != self.beginnings
        self.beginnings = beginnings
        switch told {
        case nil where !isBusy:
            told = .idle
            return .tell(.idle)
        case .idle where !isBusy && !hasBegun: return .wait(until: nil)
        case nil, .idle:
            told = .busy
            busySince = now
            return .tell(.busy)
        case .busy:
            if isBusy { return .wait(until: nil) }
            guard now >= busySince + minimum else { return .wait(until: busySince + minimum) }
            told = .idle
            return .tell(.idle)
        }
    }
}
