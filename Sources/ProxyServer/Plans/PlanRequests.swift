// What endpoints make of requests, as the calls of services take it.

import Configuration
import Content
import DemoMode
import ServiceCore

extension RoutePlan {
    /// Nil for an endpoint that passes its requests on as they are. Reads the files of multipart contents.
    /// - Throws: `PlanError` naming a file that cannot be read.
    static func shape(_ endpoint: EndpointConfiguration) throws(PlanError) -> RequestShape? {
        guard let request = endpoint.request else { return nil }
        return RequestShape(
            to: request.to,
            parameters: request.params.map { DefaultParameter($0.name, $0.value) },
            placement: request.placement,
            style: request.style,
            body: try request.body.map { body throws(PlanError) in try shape(body) },
            pattern: PathPattern(endpoint.path)
        )
    }

    private static func shape(_ body: BodyConfiguration) throws(PlanError) -> BodyShape {
        BodyShape(
            encoding: body.encode,
            defaults: body.defaults,
            stripsNulls: body.stripNulls,
            names: body.keys,
            dates: body.dateForm.map { DateRule(members: body.dates, form: $0) },
            data: body.data,
            limit: body.max,
            upload: body.upload.map { UploadPart(name: $0.name, filename: $0.filename, type: $0.type) },
            files: try body.files.map { part throws(PlanError) in
                let file = try load(part.path)
                return FilePart(
                    name: part.name,
                    filename: part.filename,
                    type: part.type ?? file.contentType,
                    bytes: file.bytes
                )
            }
        )
    }
}
