// Translates the mapping of a configuration, and maps the demo answers that live ones would be mapped like.

import Configuration
import DemoMode
import Mapping
import ServiceCore

extension RoutePlan {
    static func mapping(_ configuration: MappingConfiguration?, _ owner: String) -> ResponseMapping? {
        configuration.map { ResponseMapping($0.plan, buffer: $0.buffer, owner: owner) }
    }

    static func errorMapping(
        _ configuration: MappingConfiguration?,
        service: String,
        endpoint: String? = nil
    ) -> ErrorMapping? {
        configuration.map { ErrorMapping($0.plan, buffer: $0.buffer, service: service, endpoint: endpoint) }
    }

    /// The answer file as clients get it.
    /// - Throws: that it cannot be mapped, which is a mistake in the file or in the mapping.
    static func mapped(_ file: DemoFile, _ mapping: ResponseMapping?) throws(PlanError) -> DemoFile {
        guard let mapping else { return file }
        let made: Result<[UInt8], MappingFailure> = file.bytes.withUnsafeBytes { bytes in
            do throws(MappingFailure) {
                return .success(try mapping.plan.map(bytes, limit: max(mapping.buffer, bytes.count)))
            } catch {
                return .failure(error)
            }
        }
        switch made {
        case .success(let bytes):
            let (path, type) = (file.path, "application/json")
            return DemoFile(path: path, bytes: bytes, contentType: type, modifiedAt: file.modifiedAt)
        case .failure(let failure): throw .mapping(file: file.path, mapping.message(failure))
        }
    }
}
