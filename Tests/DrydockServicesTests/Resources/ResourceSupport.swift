// A scripted transport behind a manager, and the errors of loads.

import Drydock
import DrydockServices
import DrydockTesting
import Foundation
import HTTPTypes
import Testing

let base = URL(string: "https://api.test/v1")

/// A manager whose transport answers everything alike.
func makeLoader(
    _ answer: ScriptedAnswer = .json("{}"),
    _ change: (inout ServiceManager.Configuration) -> Void = { _ in }
) -> (ServiceManager, ScriptedTransport) {
    let transport = ScriptedTransport()
    transport.answerAll { _ in answer }
    return (makeLoader(over: transport, base, change), transport)
}

/// A manager over a transport.
func makeLoader(
    over transport: any Transport,
    _ base: URL?,
    _ change: (inout ServiceManager.Configuration) -> Void
) -> ServiceManager {
    var configuration = ServiceManager.Configuration()
    configuration.base = base
    change(&configuration)
    return ServiceManager(transport: transport, configuration: configuration)
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
