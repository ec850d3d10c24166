// What conditions and ranges are compared with: the validators of a stored response where they stand.

import HTTPWire

/// For the length of one call: nothing is copied, and no type is generic, so that the hot path pays for neither.
package struct BorrowedValidators {
    package let status: Int
    /// When its head arrived, Unix seconds.
    package let responseTime: Int64
    // Of whoever holds the response: never kept beyond the call.
    /// The values of ETag, Last-Modified and Date; nil where there is no such line.
    package let etag: UnsafeRawBufferPointer?
    package let lastModified: UnsafeRawBufferPointer?
    package let date: UnsafeRawBufferPointer?

    package init(
        status: Int,
        responseTime: Int64,
        etag: UnsafeRawBufferPointer?,
        lastModified: UnsafeRawBufferPointer?,
        date: UnsafeRawBufferPointer?
    ) {
        self.status = status
        self.responseTime = responseTime
        self.etag = etag
        self.lastModified = lastModified
        self.date = date
    }

    var tag: BorrowedTag? { etag.flatMap { BorrowedTag($0) } }

    /// Last-Modified where it is a date, Unix seconds.
    var modifiedAt: Int64? { lastModified.flatMap { HTTPDate.parse($0, now: responseTime) } }

    /// Date, or the time of arrival where there is none that parses.
    var datedAt: Int64 { date.flatMap { HTTPDate.parse($0, now: responseTime) } ?? responseTime }

    /// Last-Modified where it counts as strong (RFC 9110 section 8.8.2.2): Date is at least one second later.
    var stronglyModifiedAt: Int64? {
        guard let modifiedAt, let date, let dated = HTTPDate.parse(date, now: responseTime), modifiedAt < dated else {
            return nil
        }
        return modifiedAt
    }
}

extension StoredHead {
    /// Calls `body` with its validators where they stand.
    package func withValidators<R>(_ body: (BorrowedValidators) -> R) -> R {
        func with(_ field: KnownField, _ next: (UnsafeRawBufferPointer?) -> R) -> R {
            fields.withFirst(field) { next($0) } ?? next(nil)
        }
        return with(.etag) { etag in
            with(.lastModified) { lastModified in
                with(.date) { date in
                    body(
                        BorrowedValidators(
                            status: status,
                            responseTime: responseTime,
                            etag: etag,
                            lastModified: lastModified,
                            date: date
                        )
                    )
                }
            }
        }
    }
}
