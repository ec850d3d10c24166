// A scripted transport behind a loader, and the errors of loads.

import Drydock
import DrydockServices
import DrydockTesting
import Foundation
import HTTPTypes
import Testing

let base = URL(string: "https://api.test/v1")

/// A loader whose transport answers everything alike.
func makeLoader(_ answer: ScriptedAnswer = .json("{}")) -> (ResourceLoader, ScriptedTransport) {
    let transport = ScriptedTransport()
    transport.answerAll { _ in answer }
    return (ResourceLoader(transport: transport, base: base), transport)
}

/// The error that a load ends with.
func serviceError<Model>(_ work: () async throws(ServiceError) -> Loaded<Model>) async -> ServiceError? {
    do throws(ServiceError) {
        let loaded = try await work()
        Issue.record("there was a model: \(loaded.model)")
        return nil
    } catch {
        return error
    }
}

extension ServiceError {
    /// The kind of it.
    var name: String {
        switch self {
        case .invalidRequest: "invalidRequest"
        case .missingParameter: "missingParameter"
        case .encoding: "encoding"
        case .vetoed: "vetoed"
        case .cancelled: "cancelled"
        case .transport: "transport"
        case .status: "status"
        case .mapping: "mapping"
        }
    }

    var mappingError: MappingError? { if case .mapping(let error, _) = self { error as? MappingError } else { nil } }
}

/// A user as an API has it.
struct User: Codable, Hashable, Sendable {
    var name: String
    var city: String?
}
