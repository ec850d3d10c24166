// Recordings in the admin API: made of what is stored, exported, and compared with what origins answer now.

package import AdminAPI
import HTTPWire

/// Implemented where the daemon is put together.
package protocol RecordingActions: Sendable {
    /// Makes a recording of a stored response.
    /// - Parameter question: the request that selects it.
    func keep(_ question: ExplainQuery) async throws(Problem) -> AdminRecording
    /// Writes recordings into a seed folder that the daemon can write.
    /// - Parameter service: only those of this one; nil exports all.
    func exportRecordings(to path: String, service: String?) async throws(Problem) -> AdminSeedExport
    /// Asks origins whether their answers still are those that are recorded; no recording changes.
    func drift(_ question: DriftQuestion) async throws(Problem) -> AdminDrift
}

extension RecordingActions {
    /// What makes recordings, and looks at them.
    package var recordingRoutes: [AdminRoute] {
        [
            AdminRoute(.post, .recordings) { request async throws(Problem) in
                let query = request.query
                switch (query["keep"], query["export"]) {
                case (let url?, nil):
                    try request.check(["keep", "field", "service"])
                    let members = request.queryItems.map {
                        (name: $0.name == "keep" ? "url" : $0.name, value: $0.value)
                    }
                    guard !url.isEmpty else { throw Problem.badQuery("give keep=URL, as a client would send it") }
                    return try .json(await self.keep(try ExplainQuery(members: members)))
                case (nil, let path?):
                    try request.check(["export", "service"])
                    try check(folder: path)
                    return try .json(await self.exportRecordings(to: path, service: query["service"]))
                default: throw Problem.badQuery("give either keep=URL or export=DIR")
                }
            },
            AdminRoute(.post, .drift) { request async throws(Problem) in
                try .json(await self.drift(try DriftQuestion(members: request.queryItems)))
            },
        ]
    }
}

extension DriftQuestion {
    /// `service=` once at most; `field=Name: value` and `compare=NAME` as often as there are fields.
    init(members: [(name: String, value: String)]) throws(Problem) {
        self.init()
        for (name, value) in members {
            switch name {
            case "service" where service == nil: service = value
            case "field": fields.append(try ExplainQuery.field(value))
            case "compare" where !value.isEmpty: compared.append(value)
            default:
                throw .badQuery("\(name) is not known, empty, or given twice; there are service, field and compare")
            }
        }
    }
}
