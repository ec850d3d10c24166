// What the admin API can ask of the daemon: its state, its stored responses, its switches.

package import AdminAPI

/// Implemented where the daemon is put together.
package protocol AdminActions: Sendable {
    func status() async -> AdminStatus
    /// - Throws: where the daemon is ending.
    func entries(_ query: AdminEntryQuery) async throws(Problem) -> AdminEntries
    /// Reads the configuration again, and puts it in force if it has no error.
    func reload() async -> ReloadResult
    /// What would become of a request; nothing changes by it.
    /// - Throws: the refusal of the question, or the one that the request would be answered with.
    func explain(_ question: ExplainQuery) async throws(Problem) -> AdminExplanation
    /// Leaves origins alone from now on, or asks them again; a reload puts the configuration's word in force.
    func setOffline(_ isOffline: Bool) async -> AdminOffline
    /// Moves the clock that lifetimes are counted by.
    /// - Throws: ``ClockMove/refused`` unless the configuration allows it, or that it would go too far.
    func moveClock(_ move: ClockMove) async throws(Problem) -> AdminClock
    /// The daemon serves: its sockets listen and its tiers are open.
    var isReady: Bool { get }
    /// In the Prometheus text format.
    func metricsText() async -> String
}
