// Generated from /openapi.json by `npm run client:generate`; do not edit.
export interface paths {
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Prometheus metrics
         * @description Served while METRICS_TOKEN is set, to clients that send it as bearer token. Login and API tokens are rejected.
         */
        get: operations["getMetrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Does the service work?
         * @description Cheap and local: calls no other system. Each service adds fields of its own.
         */
        get: operations["getHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/login": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Log in
         * @description Send the returned token with every other request: `Authorization: Bearer <access_token>`. When it has expired, log in again.
         */
        post: operations["logIn"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Who am I?
         * @description The caller behind the token of this request: user, role and limits.
         */
        get: operations["getMe"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/password": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Change your password, or accept an invitation
         * @description With `current`: your own, with the token of a login, which goes on while all your other logins end; API tokens stay valid until they are revoked. With `username` and `invite`: the first one, without a token.
         */
        post: operations["setPassword"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/logout": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Log out
         * @description The token that is sent ends at once, at every replica. Other logins go on, unless `everywhere` is true; API tokens do in any case.
         */
        post: operations["logOut"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/methods": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * How to log in
         * @description With a password, at an OpenID provider, or both.
         */
        get: operations["getLoginMethods"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/oidc/login": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Log in at the OpenID provider
         * @description For a browser: it goes to the provider, and comes back to `return_to` with a one-time `code` in the query, which `POST /api/auth/oidc/token` takes within 60 seconds.
         */
        get: operations["beginSingleSignOn"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/oidc/callback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The redirect URI of single sign-on
         * @description The provider sends the browser here; register it there.
         */
        get: operations["finishSingleSignOn"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/oidc/token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Exchange the code of single sign-on for a token
         * @description Each code counts once, for 60 seconds, also with a wrong verifier. The code of a failed login gives its error.
         */
        post: operations["redeemSingleSignOnCode"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Exchange the token of a workload
         * @description For CI without secrets: a token of the issuer of a trust becomes one of this service, with the rights of the trust. Each is exchanged once. RFC 8693.
         */
        post: operations["exchangeToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/trusts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List trusts
         * @description Which workloads may log in without secrets, with which rights; oldest first. For admins without limits.
         */
        get: operations["listTrusts"];
        put?: never;
        /**
         * Trust a workload
         * @description A workload with a token of this issuer, for this audience, with all these claims, gets a token of this service at `POST /api/auth/token`.
         */
        post: operations["addTrust"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/trusts/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Remove a trust
         * @description Its tokens end at once.
         */
        delete: operations["removeTrust"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List API tokens
         * @description Without their secrets, which are shown once, when a token is created.
         */
        get: operations["listTokens"];
        put?: never;
        /**
         * Create an API token
         * @description For programs: long-lived, revocable, limited. Send it as `Authorization: Bearer`, as the password of `Authorization: Basic`, or as `X-Api-Key`. It never has more rights than its owner has at the time of use.
         */
        post: operations["createToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/tokens/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revoke an API token
         * @description Your own; an admin without limits may revoke any. It stops working at once.
         */
        delete: operations["deleteToken"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/users": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List users
         * @description In the order in which they were added. Only admins without limits manage users.
         */
        get: operations["listUsers"];
        put?: never;
        /**
         * Add a user
         * @description With a password, or with an invitation by which the person sets one.
         */
        post: operations["createUser"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/users/{username}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Remove a user
         * @description The logins and API tokens of the user end at once. One of single sign-on is barred until `users allow` admits it.
         */
        delete: operations["deleteUser"];
        options?: never;
        head?: never;
        /**
         * Change the rights of a user, or invite it to set another password
         * @description Rights count at once, also for the logins and API tokens of the user. The password stays valid until the invitation is accepted.
         */
        patch: operations["changeUser"];
        trace?: never;
    };
    "/api/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What has happened, oldest first
         * @description Events of the last 30 days about what the caller may see. Read on with `after` = `next`, at the end too: nothing is missed. Types: `files.changed`, `version.created`, `link.used_up`.
         *
         *     With `Accept: text/event-stream` the response stays open and sends each event when it happens (server-sent events; a comment every 15 seconds). After a break, send the last id as `Last-Event-ID`, as browsers do.
         */
        get: operations["listEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the webhooks
         * @description Without their secrets.
         */
        get: operations["listWebhooks"];
        put?: never;
        /**
         * Send events to a URL
         * @description As Standard Webhooks has it: POST with the event as the body, signed with the secret of this response. A response other than 2xx within 10 seconds is followed by further tries, for two days; 410 pauses the webhook. At most 50.
         */
        post: operations["createWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/webhooks/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read one webhook
         * @description Without its secret.
         */
        get: operations["getWebhook"];
        put?: never;
        post?: never;
        /**
         * Delete a webhook
         * @description With what was still to be delivered to it.
         */
        delete: operations["deleteWebhook"];
        options?: never;
        head?: never;
        /**
         * Pause, resume or change a webhook
         * @description What happens while it is paused is delivered when it is resumed.
         */
        patch: operations["updateWebhook"];
        trace?: never;
    };
    "/api/webhooks/{id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a test event now
         * @description One try, of type `webhook.test`; also to a paused webhook.
         */
        post: operations["testWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/webhooks/{id}/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The last 100 deliveries
         * @description A `pending` one is tried again.
         */
        get: operations["listDeliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/webhooks/{id}/deliveries/{delivery}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Deliver an event again
         * @description With the same id, so that the receiver can tell that it repeats.
         */
        post: operations["retryDelivery"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/files/upload": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Store one file
         * @description Replaces an existing file; `If-None-Match: *` forbids that, `If-Match` allows it for one state of the file only. After the response the bytes are durable; a failed upload leaves nothing behind.
         */
        post: operations["uploadFile"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/files/upload/batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Store several files, all or none
         * @description A file name may contain a relative directory, as browsers send it for a folder. Replaces existing files; `If-None-Match: *` forbids that, and the refusal names all that exist in `paths`.
         */
        post: operations["uploadFiles"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/uploads": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Begin a resumable upload
         * @description tus 1.0.0, for any of its clients. The file takes the path in `Upload-Metadata`, or its `filename` in the directory of the query. A body of `application/offset+octet-stream` is the first bytes.
         */
        post: operations["createUpload"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/uploads/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Remove an unfinished upload
         * @description The file of a finished one stays.
         */
        delete: operations["deleteUpload"];
        options?: never;
        head?: never;
        /**
         * Append bytes to an upload
         * @description The request that completes the file stores it, and responds with its `Content-Location`, `ETag` and `Repr-Digest`. It may be repeated. Bytes of a request that is cut count, except with `Upload-Checksum`.
         */
        patch: operations["appendToUpload"];
        trace?: never;
    };
    "/api/files": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List files
         * @description A page past the end is an empty list. Pages by `after` repeat and skip nothing while files come and go.
         */
        get: operations["listFiles"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/files/categories": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Count files by category, largest count first
         * @description The category follows from the media type of a file.
         */
        get: operations["listCategories"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/files/tree": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show a directory with everything below it
         * @description At most 10,000 nodes, breadth first. An unopened directory has `children: null`: request it with its path as `prefix`.
         */
        get: operations["getTree"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/files/{path}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the record of a file
         * @description What is stored about it, not its bytes: those are at `/static/{path}`.
         */
        get: operations["getFile"];
        /**
         * Store the request body as a file
         * @description The body is the file, of any content type: `curl -T`. Replaces an existing file under the same conditions as an upload. The ETag of the response is that of the record; If-Match also accepts the quoted `sha256`.
         */
        put: operations["putFile"];
        post?: never;
        /**
         * Delete a file
         * @description After the response no GET returns the file.
         */
        delete: operations["deleteFile"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/files/move": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Move a file or a directory, all or nothing
         * @description A directory is merged into an existing one. Records keep `created_at`; `updated_at` is the time of the move. More than 20,000 files are moved in slices, each whole.
         */
        post: operations["moveFiles"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/files/move/batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Move several files or directories, all or nothing
         * @description One change of up to 20,000 files. A 409 because of existing files names them in `paths`. Files that are stored in one of the directories meanwhile stay there.
         */
        post: operations["moveFileBatch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/files/delete": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Delete several files or a directory, all or nothing
         * @description Send either `paths` or `prefix`. After the response no GET returns the files. More than 20,000 files are deleted in slices, each whole; files that are stored meanwhile stay.
         */
        post: operations["deleteFiles"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/versions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the versions, newest first
         * @description Changelogs are cut to 1 KiB.
         */
        get: operations["listVersions"];
        put?: never;
        /**
         * Record a version
         * @description A name for the current state of the files. Each name can be recorded once.
         */
        post: operations["createVersion"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/versions/current": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the newest version
         * @description Public, and cacheable for a few seconds.
         */
        get: operations["getCurrentVersion"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/versions/{version}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read one version with its whole changelog
         * @description The list cuts long changelogs.
         */
        get: operations["getVersion"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/versions/stats": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Storage statistics
         * @description Counted while files change, so that reading them is cheap; below a `prefix` when they are read.
         */
        get: operations["getStats"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/changes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List who changed which files, newest first
         * @description Each request that changes files is one change. Callers limited to folders see those that changed nothing outside them.
         */
        get: operations["listChanges"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/changes/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read one change with its files
         * @description A page of the files, by path. `before` null: new; `after` null: removed.
         */
        get: operations["getChange"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/changes/{id}/revert": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Take back what one change did, and nothing else
         * @description All or nothing; a change of its own, which can be reverted too. 409 `revert_conflict` names up to ten `paths` that were changed since. Needs no body.
         */
        post: operations["revertChange"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/trees/{path}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Download a directory as one thing
         * @description As `application/x-tar` (default), `application/zip` or `application/json`, by Accept. Reproducible to the byte: paths are sorted, and each file has its own time.
         */
        get: operations["getTreeFiles"];
        /**
         * Make a directory exactly what the body is, in one step
         * @description The body is one of: an archive (`tar`, also with gzip or zstd, or `zip`); a manifest `{ "files": { "path": { "sha256" } } }` of contents that are stored; `{ "from": "previews/pr-12/", "at" }`, another directory or the same, as it is or was. Its type is looked at, not believed. Readers of /static see all of the old tree or all of the new one. Equal files stay as they are.
         */
        put: operations["putTree"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/access": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the rules of folders
         * @description The rule of the longest prefix decides; files without a rule follow `STATIC_DEFAULT_ACCESS`. Admins limited to folders see the rules inside them.
         */
        get: operations["listAccessRules"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/access/{path}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Make a folder, or one file, private or public
         * @description Counts with the response, at every replica. A private file is 404 at `/static/` without credentials that may read it. Copies that caches hold of what was public are out of reach.
         */
        put: operations["setAccessRule"];
        post?: never;
        /**
         * Remove the rule of a folder
         * @description Its files follow the next rule above. Counts with the response.
         */
        delete: operations["removeAccessRule"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List every state of one path, newest first
         * @description Also of a file that is deleted. Old contents may be kept no more.
         */
        get: operations["getHistory"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/history/content": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Download a file as it was after a change
         * @description Whether the change touched the path or not. Ranges and conditions as under /static.
         */
        get: operations["getPastContent"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/versions/{version}/files": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the files that a version shows
         * @description As the list of files, at the moment of the version.
         */
        get: operations["listVersionFiles"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/versions/{version}/diff": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List what differs between a version and another, or the current files
         * @description By path: a page holds the three kinds together. `before` is the version of the URL, `after` the other.
         */
        get: operations["compareVersions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/contents/{sha256}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Store a content that a manifest is going to name
         * @description It is kept for a day without a file, for manifests of the same caller. The body is the content, of any type.
         */
        put: operations["putContent"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/links": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List links
         * @description Your own, newest first; admins see all. None of removed users, and no URLs: these are not stored.
         */
        get: operations["listLinks"];
        put?: never;
        /**
         * Create a link to a file or folder
         * @description Everybody who has its URL reads what is there, private or not, until the link expires, is deleted or used up, or you may not read it any more.
         */
        post: operations["createLink"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/links/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Delete a link
         * @description Your own; an admin may delete any. It stops working at once, at every replica.
         */
        delete: operations["deleteLink"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/l/{token}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The file of a link, or a page that lists its folder
         * @description As `/static/{path}`, but never cached. A GET from the first byte of a file is a download; ranges that begin later belong to one of the last hour.
         */
        get: operations["openLink"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/l/{token}/{path}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The file of a link, or a page that lists its folder
         * @description As `/static/{path}`, but never cached. A GET from the first byte of a file is a download; ranges that begin later belong to one of the last hour.
         */
        get: operations["openLinkBelow"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/static/{path}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The content of a file
         * @description Public. Supports conditions (also If-Match, If-Modified-Since and If-Unmodified-Since), ranges, and compressed text by Accept-Encoding. Other query parameters are ignored.
         */
        get: operations["getContent"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        LoginInput: {
            /** @example admin */
            username: string;
            /** @example correct horse battery */
            password: string;
        };
        /**
         * @example {
         *       "current": "the old password",
         *       "new": "the new password"
         *     }
         */
        NewPasswordInput: {
            /** @description your password until now; instead of `username` and `invite` */
            current?: string;
            username?: string;
            /** @description the code of an invitation */
            invite?: string;
            /** @description at least 10 characters, not your username, not among the most common passwords */
            new: string;
        };
        /**
         * @example {
         *       "code": "b3RrgVnRBQ0iJbk8mNjwYxcJ5uC4fhq0a9ZqJ2pXzWY",
         *       "verifier": "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
         *     }
         */
        SingleSignOnCodeInput: {
            code: string;
            /** @description whose S256 was the `challenge` */
            verifier: string;
        };
        TokenExchangeInput: {
            /** @constant */
            grant_type: "urn:ietf:params:oauth:grant-type:token-exchange";
            /** @example eyJhbGciOi… */
            subject_token: string;
            /** @constant */
            subject_token_type: "urn:ietf:params:oauth:token-type:jwt";
        } & {
            [key: string]: unknown;
        };
        NewTrustInput: {
            /** @example deploy-site */
            name: string;
            /**
             * @description of the tokens: `iss`
             * @example https://token.actions.githubusercontent.com
             */
            issuer: string;
            /**
             * @description that the tokens must be for: in `aud`
             * @example https://files.example.com
             */
            audience: string;
            /**
             * @description that the tokens must have, all of them, exactly
             * @example {
             *       "repository": "acme/site",
             *       "ref": "refs/heads/main"
             *     }
             */
            claims: {
                [key: string]: string;
            };
            /** @enum {string} */
            role: "viewer" | "editor" | "admin";
            /** @description only these */
            domains?: string[];
            /** @description only these */
            folders?: string[];
            records?: components["schemas"]["RecordLimitInput"][];
        };
        /**
         * @example {
         *       "name": "_acme-challenge",
         *       "types": [
         *         "TXT"
         *       ]
         *     }
         */
        RecordLimitInput: {
            /** @description relative to the domain; `*` for one label or more; `@` for the domain */
            name: string;
            types: string[];
        };
        /**
         * @example {
         *       "name": "certificates of example.com",
         *       "records": [
         *         {
         *           "name": "_acme-challenge",
         *           "types": [
         *             "TXT"
         *           ]
         *         }
         *       ]
         *     }
         */
        NewTokenInput: {
            /** @description for the list, the history and the logs */
            name: string;
            /** @description seconds; default 90 days; 0: never, for admins only */
            expires_in?: number;
            /**
             * @description default: viewer; with `records`: none, so these only
             * @enum {string}
             */
            role?: "viewer" | "editor" | "admin";
            /** @description only these */
            domains?: string[];
            /** @description only these */
            folders?: string[];
            /**
             * @description propose: another person approves each write of a zone
             * @enum {string}
             */
            writes?: "propose";
            records?: components["schemas"]["RecordLimitInput"][];
            networks?: (string)[];
            replace?: boolean;
        };
        NewUserInput: {
            /** @example alice */
            username: string;
            /** @enum {string} */
            role: "viewer" | "editor" | "admin";
            /** @description null: all */
            domains?: string[] | null;
            /** @description null: all */
            folders?: string[] | null;
            writes?: "propose" | null;
            /** @description without one, the response has an `invite` */
            password?: string;
        };
        /**
         * @example {
         *       "role": "viewer"
         *     }
         */
        UserChangeInput: {
            /** @enum {string} */
            role?: "viewer" | "editor" | "admin";
            /** @description null: all */
            domains?: string[] | null;
            /** @description null: all */
            folders?: string[] | null;
            writes?: "propose" | null;
            /**
             * @description a new invitation, such as for a forgotten password: in the response
             * @constant
             */
            invite?: true;
        };
        NewWebhookInput: {
            /**
             * @description https, without a password in it
             * @example https://hooks.example.com/changes
             */
            url: string;
            name?: string;
            /** @description default: all */
            types?: ("files.changed" | "version.created" | "link.used_up")[];
            /** @description only events about these folders; default: all */
            folders?: string[];
        };
        /**
         * @example {
         *       "paused": true
         *     }
         */
        WebhookChangesInput: {
            /**
             * @description https, without a password in it
             * @example https://hooks.example.com/changes
             */
            url?: string;
            name?: string;
            /** @description default: all */
            types?: ("files.changed" | "version.created" | "link.used_up")[];
            /** @description only events about these folders; default: all */
            folders?: string[];
            paused?: boolean;
        };
        /**
         * @example {
         *       "from": "notes/",
         *       "to": "archive/notes/"
         *     }
         */
        MoveInput: {
            /** @description path of a file, or of a directory with a trailing slash */
            from: string;
            /** @description new path, of the same kind */
            to: string;
            /** @description replace files that exist at the new paths; default: false */
            overwrite?: boolean;
        };
        MoveBatchInput: {
            moves: components["schemas"]["MoveInput"][];
        };
        /**
         * @example {
         *       "paths": [
         *         "notes/hello.txt"
         *       ]
         *     }
         */
        DeletionInput: {
            paths?: string[];
            /** @description a directory: every file below it; `/` is all files */
            prefix?: string;
            /** @description admins: also all the past of the `paths`, which may have been deleted before; their bytes leave the disk within seconds, and cannot be brought back */
            forget?: boolean;
        };
        /**
         * @example {
         *       "version": "1.4.0",
         *       "changelog": "Dark mode and a faster start."
         *     }
         */
        NewVersionInput: {
            version: string;
            /** @description what changed, at most 64 KiB */
            changelog: string;
        };
        /**
         * @example {
         *       "public": false
         *     }
         */
        NewAccessRuleInput: {
            public: boolean;
        };
        /**
         * @example {
         *       "path": "notes/hello.txt",
         *       "downloads": 3
         *     }
         */
        NewLinkInput: {
            /** @description path of a file, or of a folder with a trailing slash */
            path: string;
            /** @description seconds; default 7 days */
            expires_in?: number;
            /** @description absent: not limited */
            downloads?: number;
            /** @description for the list, and the title of the page of a folder */
            name?: string;
        };
        /** @description RFC 9457 problem details; some codes have more members */
        Problem: {
            /** @constant */
            type: "about:blank";
            title: string;
            status: number;
            /**
             * @description stable and machine-readable
             * @enum {string}
             */
            code: "bad_request" | "body_too_large" | "change_not_found" | "checksum_mismatch" | "concatenation_not_supported" | "contents_missing" | "delivery_not_found" | "digest_mismatch" | "directory_not_found" | "duplicate_path" | "events_expired" | "file_missing" | "file_not_found" | "file_too_large" | "forbidden" | "headers_too_large" | "history_gone" | "insufficient_storage" | "internal_error" | "invalid_archive" | "invalid_credentials" | "invalid_path" | "last_admin" | "link_not_found" | "login_not_begun" | "malformed_body" | "malformed_request" | "malformed_url" | "method_not_allowed" | "no_version" | "not_allowed" | "not_found" | "offset_conflict" | "outcome_unknown" | "password_login_off" | "path_conflict" | "precondition_failed" | "quota_exceeded" | "range_not_satisfiable" | "request_timeout" | "reserved_path" | "revert_conflict" | "rights_elsewhere" | "rule_not_found" | "token_exists" | "token_expired" | "token_not_found" | "too_many_files" | "too_many_links" | "too_many_listeners" | "too_many_requests" | "too_many_tokens" | "too_many_uploads" | "too_many_webhooks" | "tree_too_large" | "trust_exists" | "trust_not_found" | "tus_version_not_supported" | "unauthorized" | "unavailable" | "unsupported_media_type" | "upload_ended" | "upload_length_exceeded" | "upload_locked" | "upload_not_found" | "url_too_long" | "user_exists" | "user_not_found" | "validation_failed" | "version_exists" | "version_not_found" | "weak_password" | "webhook_not_found" | "webhook_url_refused";
            /** @description one sentence a person can act on */
            detail: string;
            /** @description also in every log line of the request */
            request_id: string;
            /** @description only for validation_failed: every fault */
            errors?: {
                /** @description a JSON Pointer into the body, or /query/<name>, /path/<name> */
                path: string;
                message: string;
            }[];
            /** @description files and directories that are missing, or were changed since */
            paths?: string[];
        } & {
            [key: string]: unknown;
        };
        Health: {
            /**
             * @description degraded: a dependency of the service fails
             * @enum {string}
             */
            status: "ok" | "degraded" | "unavailable";
            /**
             * @description of the service
             * @example 0.1.0
             */
            version: string;
            /** @example 86400 */
            uptime_seconds: number;
            /**
             * @description by name
             * @example {
             *       "database": {
             *         "status": "ok"
             *       }
             *     }
             */
            checks: {
                [key: string]: {
                    /** @enum {string} */
                    status: "ok" | "degraded" | "unavailable";
                } & {
                    [key: string]: unknown;
                };
            };
        } & {
            [key: string]: unknown;
        };
        LoggedIn: {
            user: components["schemas"]["Account"];
            /**
             * @description for the header Authorization: Bearer …
             * @example eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZG1pbiJ9.c2lnbmF0dXJl
             */
            access_token: string;
            /** @constant */
            token_type: "Bearer";
            /**
             * @description seconds
             * @example 3600
             */
            expires_in: number;
        };
        Account: {
            /** @example admin */
            username: string;
            /**
             * @example admin
             * @enum {string}
             */
            role: "viewer" | "editor" | "admin";
            /** @description only these; absent: all */
            domains?: string[];
            /** @description only these; absent: all */
            folders?: string[];
            /**
             * @description propose: another person approves each write of a zone
             * @enum {string}
             */
            writes?: "propose";
            /**
             * @description logged in at the OpenID provider
             * @constant
             */
            source?: "oidc";
        };
        Me: {
            user: components["schemas"]["Account"];
            /** @description null: never */
            expires_at: string | null;
        };
        /**
         * @example {
         *       "password": true,
         *       "oidc": null
         *     }
         */
        LoginMethods: {
            password: boolean;
            /** @description null: there is no single sign-on */
            oidc: {
                /** @description of the provider, for a button */
                name: string;
            } | null;
        };
        ExchangedToken: {
            /**
             * @description for the header Authorization: Bearer …
             * @example eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZG1pbiJ9.c2lnbmF0dXJl
             */
            access_token: string;
            /** @constant */
            token_type: "Bearer";
            /**
             * @description seconds
             * @example 3600
             */
            expires_in: number;
            /** @constant */
            issued_token_type: "urn:ietf:params:oauth:token-type:access_token";
        };
        /** @description RFC 6749, 5.2 */
        OAuthError: {
            /** @enum {string} */
            error: "invalid_grant" | "invalid_request" | "unsupported_grant_type";
            /** @example No trust admits this token */
            error_description: string;
        };
        TrustList: {
            trusts: components["schemas"]["Trust"][];
            pagination: components["schemas"]["Pagination"];
        };
        Trust: {
            /** @example 5b1c8a52-0c1e-4f77-9a55-3f8e2b6d9c11 */
            id: string;
            /** @example deploy-site */
            name: string;
            /**
             * @description of the tokens: `iss`
             * @example https://token.actions.githubusercontent.com
             */
            issuer: string;
            /**
             * @description that the tokens must be for: in `aud`
             * @example https://files.example.com
             */
            audience: string;
            /**
             * @description that the tokens must have, all of them, exactly
             * @example {
             *       "repository": "acme/site",
             *       "ref": "refs/heads/main"
             *     }
             */
            claims: {
                [key: string]: string;
            };
            /** @enum {string} */
            role: "viewer" | "editor" | "admin";
            /** @description only these */
            domains?: string[];
            /** @description only these */
            folders?: string[];
            records?: components["schemas"]["RecordLimit"][];
            /** Format: date-time */
            created_at: string;
        };
        /**
         * @example {
         *       "name": "_acme-challenge",
         *       "types": [
         *         "TXT"
         *       ]
         *     }
         */
        RecordLimit: {
            /** @description relative to the domain; `*` for one label or more; `@` for the domain */
            name: string;
            types: string[];
        };
        Pagination: {
            page: number;
            /** @example 50 */
            page_size: number;
            total_items: number;
            total_pages: number;
        };
        CreatedToken: {
            /** @example 3f0e5a0c-8f3b-4b6e-9a51-6a3c1d2e4f50 */
            id: string;
            /** @example certificates of example.com */
            name: string;
            /**
             * @description the last four characters
             * @example qRxy
             */
            hint: string;
            /** @example admin */
            owner: string;
            /** @description null: only `records` */
            role: ("viewer" | "editor" | "admin") | null;
            /**
             * @description null: not limited
             * @example [
             *       "example.com"
             *     ]
             */
            domains: string[] | null;
            /**
             * @description null: not limited
             * @example null
             */
            folders: string[] | null;
            /** @example null */
            writes: "propose" | null;
            /**
             * @description null: not limited
             * @example null
             */
            records: components["schemas"]["RecordLimit"][] | null;
            /**
             * @description null: from everywhere
             * @example null
             */
            networks: string[] | null;
            /** @description by the registrar's protocol: whether it may replace a zone that it has not read */
            replace: boolean;
            /** Format: date-time */
            created_at: string;
            /** @description null: never */
            expires_at: string | null;
            /** @description to the minute; null: not used yet */
            last_used_at: string | null;
            /**
             * @description shown only now
             * @example ds_8GQ3nV0pXhT5cWzK2mLrYbJ7dFsA9eUu0PqRxy
             */
            token: string;
        };
        TokenList: {
            tokens: components["schemas"]["ApiToken"][];
            pagination: components["schemas"]["Pagination"];
        };
        ApiToken: {
            /** @example 3f0e5a0c-8f3b-4b6e-9a51-6a3c1d2e4f50 */
            id: string;
            /** @example certificates of example.com */
            name: string;
            /**
             * @description the last four characters
             * @example qRxy
             */
            hint: string;
            /** @example admin */
            owner: string;
            /** @description null: only `records` */
            role: ("viewer" | "editor" | "admin") | null;
            /**
             * @description null: not limited
             * @example [
             *       "example.com"
             *     ]
             */
            domains: string[] | null;
            /**
             * @description null: not limited
             * @example null
             */
            folders: string[] | null;
            /** @example null */
            writes: "propose" | null;
            /**
             * @description null: not limited
             * @example null
             */
            records: components["schemas"]["RecordLimit"][] | null;
            /**
             * @description null: from everywhere
             * @example null
             */
            networks: string[] | null;
            /** @description by the registrar's protocol: whether it may replace a zone that it has not read */
            replace: boolean;
            /** Format: date-time */
            created_at: string;
            /** @description null: never */
            expires_at: string | null;
            /** @description to the minute; null: not used yet */
            last_used_at: string | null;
        };
        UserList: {
            users: components["schemas"]["User"][];
            pagination: components["schemas"]["Pagination"];
        };
        User: {
            /** @example alice */
            username: string;
            /** @enum {string} */
            role: "viewer" | "editor" | "admin";
            /**
             * @description null: not limited
             * @example [
             *       "example.com"
             *     ]
             */
            domains: string[] | null;
            /**
             * @description null: not limited
             * @example null
             */
            folders: string[] | null;
            /** @example null */
            writes: "propose" | null;
            /**
             * @description where it logs in
             * @enum {string}
             */
            source: "local" | "oidc";
            /** @description null: not known */
            created_at: string | null;
            /** @description null: not yet, in this service */
            last_login_at: string | null;
        };
        CreatedUser: {
            /** @example alice */
            username: string;
            /** @enum {string} */
            role: "viewer" | "editor" | "admin";
            /**
             * @description null: not limited
             * @example [
             *       "example.com"
             *     ]
             */
            domains: string[] | null;
            /**
             * @description null: not limited
             * @example null
             */
            folders: string[] | null;
            /** @example null */
            writes: "propose" | null;
            /**
             * @description where it logs in
             * @enum {string}
             */
            source: "local" | "oidc";
            /** @description null: not known */
            created_at: string | null;
            /** @description null: not yet, in this service */
            last_login_at: string | null;
            /** @description shown only now, valid once and for 72 hours, for `POST /api/auth/password` */
            invite?: string;
        };
        /**
         * @example {
         *       "events": [
         *         {
         *           "id": "01KEZ5H3C0000ABCDEFGHJKMNP",
         *           "type": "files.changed",
         *           "at": "2027-01-15T09:30:00.000Z",
         *           "by": "admin",
         *           "request_id": "9f1c2a4e-5b7d-4c3a-8e6f-0a1b2c3d4e5f",
         *           "data": {
         *             "id": 4711,
         *             "at": "2027-01-15T09:30:00.000Z",
         *             "by": "admin",
         *             "token": null,
         *             "request_id": "9f1c2a4e-5b7d-4c3a-8e6f-0a1b2c3d4e5f",
         *             "action": "upload",
         *             "prefix": null,
         *             "version": null,
         *             "added": 1,
         *             "replaced": 0,
         *             "removed": 0,
         *             "bytes": 13,
         *             "paths": [
         *               "notes/hello.txt"
         *             ]
         *           }
         *         }
         *       ],
         *       "next": "01KEZ5H3C0000ABCDEFGHJKMNP"
         *     }
         */
        EventPage: {
            events: components["schemas"]["Event"][];
            /** @description the position after these events: send it as `after` */
            next: string;
        };
        Event: {
            /**
             * @description sorts by time; the same in every delivery
             * @example 01KEZ5H3C0000ABCDEFGHJKMNP
             */
            id: string;
            type: string;
            /** Format: date-time */
            at: string;
            /** @description a username; null: nobody here */
            by: string | null;
            request_id: string | null;
            /** @description what the event is about, as the API's own object */
            data: {
                [key: string]: unknown;
            };
        };
        CreatedWebhook: {
            /** @example 6a1f4e0e-2f5e-4b52-8a1e-9c7d3f0b5a21 */
            id: string;
            /** @example https://hooks.example.com/changes */
            url: string;
            /** @example chat */
            name: string | null;
            /**
             * @description null: all
             * @example null
             */
            types: string[] | null;
            /**
             * @description null: all
             * @example null
             */
            folders: string[] | null;
            /**
             * @description events wait, 30 days at most
             * @example false
             */
            paused: boolean;
            /** Format: date-time */
            created_at: string;
            /** @example admin */
            created_by: string;
            /**
             * @description signs the deliveries; shown only now
             * @example whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
             */
            secret: string;
        };
        WebhookList: {
            webhooks: components["schemas"]["Webhook"][];
            pagination: components["schemas"]["Pagination"];
        };
        Webhook: {
            /** @example 6a1f4e0e-2f5e-4b52-8a1e-9c7d3f0b5a21 */
            id: string;
            /** @example https://hooks.example.com/changes */
            url: string;
            /** @example chat */
            name: string | null;
            /**
             * @description null: all
             * @example null
             */
            types: string[] | null;
            /**
             * @description null: all
             * @example null
             */
            folders: string[] | null;
            /**
             * @description events wait, 30 days at most
             * @example false
             */
            paused: boolean;
            /** Format: date-time */
            created_at: string;
            /** @example admin */
            created_by: string;
        };
        Delivery: {
            /**
             * @description of the event
             * @example 01KEZ5H3C0000ABCDEFGHJKMNP
             */
            id: string;
            /** @example webhook.test */
            type: string;
            /** @enum {string} */
            status: "delivered" | "pending" | "failed";
            tries: number;
            /**
             * Format: date-time
             * @description of the last try
             */
            at: string;
            /**
             * @description of the next; null: none
             * @example null
             */
            next_at: string | null;
            /**
             * @description duration of the last try
             * @example 84
             */
            ms: number;
            /**
             * @description null: no response
             * @example 200
             */
            response_status: number | null;
            /** @description the first KiB of the response, or why there is none */
            answer: string | null;
        };
        DeliveryList: {
            deliveries: components["schemas"]["Delivery"][];
        };
        StoredFile: {
            /** @example notes/hello.txt */
            path: string;
            /**
             * @description last segment of the path
             * @example hello.txt
             */
            name: string;
            /**
             * @description derived from the content type
             * @example document
             * @enum {string}
             */
            category: "image" | "video" | "audio" | "font" | "document" | "archive" | "code" | "data" | "other";
            /**
             * @description from the extension, else from the first bytes
             * @example text/plain
             */
            content_type: string;
            /**
             * @description bytes
             * @example 13
             */
            size: number;
            /**
             * @description 64 hex digits
             * @example a1725bba7370e40aa78d688cc99089fcdf3d7a9d85e11e430ab83a8dceb755dc
             */
            sha256: string;
            /**
             * @description URL of the content
             * @example /static/notes/hello.txt
             */
            url: string;
            /** @description whether everybody may read the content */
            public: boolean;
            /**
             * @description username
             * @example admin
             */
            uploaded_by: string;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
        };
        Category: {
            /** @enum {string} */
            category: "image" | "video" | "audio" | "font" | "document" | "archive" | "code" | "data" | "other";
            file_count: number;
            total_size: number;
        };
        DirectoryNode: {
            /** @example notes */
            name: string;
            /** @example notes */
            path: string;
            /** @constant */
            type: "directory";
            /** @description including everything below */
            file_count: number;
            /** @description including everything below */
            total_size: number;
            children: (components["schemas"]["DirectoryNode"] | components["schemas"]["FileNode"])[] | null;
            /**
             * @description the directory has more children than a response can hold
             * @constant
             */
            truncated?: true;
        };
        FileNode: {
            /** @example hello.txt */
            name: string;
            /** @example notes/hello.txt */
            path: string;
            /** @constant */
            type: "file";
            /**
             * @description bytes
             * @example 13
             */
            size: number;
            /** @example text/plain */
            content_type: string;
        };
        Version: {
            id: number;
            /**
             * @description name of the version
             * @example 1.4.0
             */
            version: string;
            /** @example Dark mode and a faster start. */
            changelog: string;
            /**
             * @description username
             * @example admin
             */
            created_by: string;
            /** Format: date-time */
            created_at: string;
            /** @description the version shows files as this change left them; 0: there was none */
            change: number;
            /** @description false: not all files that it shows are kept any more */
            files_kept: boolean;
        };
        ListedVersion: {
            id: number;
            /**
             * @description name of the version
             * @example 1.4.0
             */
            version: string;
            /** @example Dark mode and a faster start. */
            changelog: string;
            /**
             * @description username
             * @example admin
             */
            created_by: string;
            /** Format: date-time */
            created_at: string;
            /** @description the version shows files as this change left them; 0: there was none */
            change: number;
            /** @description false: not all files that it shows are kept any more */
            files_kept: boolean;
            /**
             * @description the changelog is longer than 1 KiB: GET /api/versions/{version}
             * @constant
             */
            changelog_truncated?: true;
        };
        Stats: {
            total_files: number;
            /** @description bytes of all files */
            total_size: number;
            /** @description bytes of the distinct contents of files */
            stored_size: number;
            /** @description bytes kept only for the history */
            past_size: number;
            categories: components["schemas"]["Category"][];
            versions: number;
        };
        /**
         * @example {
         *       "id": 4711,
         *       "at": "2027-01-15T09:30:00.000Z",
         *       "by": "admin",
         *       "token": null,
         *       "request_id": "9f1c2a4e-5b7d-4c3a-8e6f-0a1b2c3d4e5f",
         *       "action": "upload",
         *       "prefix": null,
         *       "version": null,
         *       "added": 1,
         *       "replaced": 0,
         *       "removed": 0,
         *       "bytes": 13,
         *       "paths": [
         *         "notes/hello.txt"
         *       ]
         *     }
         */
        Change: {
            /** @description grows with time; some numbers are no change */
            id: number;
            /** Format: date-time */
            at: string;
            /**
             * @description username
             * @example admin
             */
            by: string;
            /** @description name of the API token that was used */
            token: string | null;
            request_id: string;
            /** @enum {string} */
            action: "upload" | "delete" | "move" | "deploy" | "restore" | "revert";
            /** @description the directory that the request named */
            prefix: string | null;
            /** @description the version recorded with the change */
            version: string | null;
            added: number;
            replaced: number;
            removed: number;
            /** @description of the files stored; of those removed if none was stored */
            bytes: number;
            /** @description up to ten of the paths */
            paths: string[];
            /**
             * @description files of it have been forgotten: only their paths are known
             * @constant
             */
            forgotten?: true;
        };
        /**
         * @example {
         *       "path": "notes/hello.txt",
         *       "before": null,
         *       "after": {
         *         "sha256": "a1725bba7370e40aa78d688cc99089fcdf3d7a9d85e11e430ab83a8dceb755dc",
         *         "size": 13
         *       }
         *     }
         */
        ChangedFile: {
            /** @example notes/hello.txt */
            path: string;
            before: {
                /**
                 * @description 64 hex digits
                 * @example a1725bba7370e40aa78d688cc99089fcdf3d7a9d85e11e430ab83a8dceb755dc
                 */
                sha256: string;
                /**
                 * @description bytes
                 * @example 13
                 */
                size: number;
            } | null;
            after: {
                /**
                 * @description 64 hex digits
                 * @example a1725bba7370e40aa78d688cc99089fcdf3d7a9d85e11e430ab83a8dceb755dc
                 */
                sha256: string;
                /**
                 * @description bytes
                 * @example 13
                 */
                size: number;
            } | null;
            /**
             * @description files of it have been forgotten: only their paths are known
             * @constant
             */
            forgotten?: true;
        };
        TreeFiles: {
            /** @example site/ */
            prefix: string;
            /**
             * @example {
             *       "index.html": {
             *         "sha256": "a1725bba7370e40aa78d688cc99089fcdf3d7a9d85e11e430ab83a8dceb755dc",
             *         "size": 13
             *       }
             *     }
             */
            files: {
                [key: string]: {
                    /**
                     * @description 64 hex digits
                     * @example a1725bba7370e40aa78d688cc99089fcdf3d7a9d85e11e430ab83a8dceb755dc
                     */
                    sha256: string;
                    /**
                     * @description bytes
                     * @example 13
                     */
                    size: number;
                };
            };
        };
        AccessRules: {
            rules: components["schemas"]["AccessRule"][];
        };
        AccessRule: {
            /** @example drafts/ */
            prefix: string;
            /** @description false: only callers of the API read its files */
            public: boolean;
            /**
             * @description username
             * @example admin
             */
            by: string;
            /** Format: date-time */
            at: string;
        };
        PathState: {
            change: number;
            /** Format: date-time */
            at: string;
            /**
             * @description username
             * @example admin
             */
            by: string;
            /** @enum {string} */
            action: "upload" | "delete" | "move" | "deploy" | "restore" | "revert";
            /** @description null: the change removed the file */
            sha256: string | null;
            size: number | null;
            /** @example text/plain */
            content_type: string | null;
            is_current: boolean;
            /**
             * @description files of it have been forgotten: only their paths are known
             * @constant
             */
            forgotten?: true;
        };
        TreeResult: {
            /** @description null: nothing was changed */
            change: components["schemas"]["Change"] | null;
            /** @example site/ */
            prefix: string;
            /** @description in the tree */
            files: number;
            added: number;
            replaced: number;
            removed: number;
            unchanged: number;
            /** @description of the body */
            bytes_received: number;
        };
        CreatedLink: {
            /** @example 0d6f3a5e-8e0f-4f0a-9f6b-3c1c1d9f1a20 */
            id: string;
            /**
             * @description of a file, or of a folder with a trailing slash
             * @example notes/hello.txt
             */
            path: string;
            /** @example null */
            name: string | null;
            /** Format: date-time */
            expires_at: string;
            /** @description null: not limited */
            downloads_left: number | null;
            /**
             * @description username
             * @example admin
             */
            by: string;
            /** Format: date-time */
            created_at: string;
            /**
             * @description shown only now: whoever has it reads the files
             * @example /l/q3VnV0x2bGk1c2R0eW9rZA
             */
            url: string;
        };
        LinkList: {
            links: components["schemas"]["Link"][];
            pagination: components["schemas"]["Pagination"];
        };
        Link: {
            /** @example 0d6f3a5e-8e0f-4f0a-9f6b-3c1c1d9f1a20 */
            id: string;
            /**
             * @description of a file, or of a folder with a trailing slash
             * @example notes/hello.txt
             */
            path: string;
            /** @example null */
            name: string | null;
            /** Format: date-time */
            expires_at: string;
            /** @description null: not limited */
            downloads_left: number | null;
            /**
             * @description username
             * @example admin
             */
            by: string;
            /** Format: date-time */
            created_at: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    getMetrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Metrics in the Prometheus text format */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /** @example # TYPE process_start_time_seconds gauge */
                    "text/plain": string;
                };
            };
            /** @description `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getHealth: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It works, even if its status is `degraded` */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "ok",
                     *       "version": "0.1.0",
                     *       "uptime_seconds": 86400,
                     *       "checks": {
                     *         "database": {
                     *           "status": "ok"
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["Health"];
                };
            };
            /** @description `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Its database or its disk fails */
            503: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "ok",
                     *       "version": "0.1.0",
                     *       "uptime_seconds": 86400,
                     *       "checks": {
                     *         "database": {
                     *           "status": "ok"
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["Health"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    logIn: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "username": "admin",
                 *       "password": "correct horse battery"
                 *     }
                 */
                "application/json": components["schemas"]["LoginInput"];
            };
        };
        responses: {
            /** @description Your account, and a token */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "user": {
                     *         "username": "admin",
                     *         "role": "admin"
                     *       },
                     *       "access_token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZG1pbiJ9.c2lnbmF0dXJl",
                     *       "token_type": "Bearer",
                     *       "expires_in": 3600
                     *     }
                     */
                    "application/json": components["schemas"]["LoggedIn"];
                };
            };
            /** @description `validation_failed`, `malformed_body` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid_credentials` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `password_login_off` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `body_too_large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable` */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getMe: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The account of the token, and its expiry */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "user": {
                     *         "username": "admin",
                     *         "role": "admin"
                     *       },
                     *       "expires_at": "2027-01-15T09:30:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Me"];
                };
            };
            /** @description `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    setPassword: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "current": "the old password",
                 *       "new": "the new password"
                 *     }
                 */
                "application/json": components["schemas"]["NewPasswordInput"];
            };
        };
        responses: {
            /** @description The new password counts from now on */
            204: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `weak_password`, `validation_failed`, `malformed_body` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `invalid_credentials` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden`, `password_login_off` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `body_too_large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable` */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    logOut: {
        parameters: {
            query?: {
                /** @description ends all logins of this user */
                everywhere?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The token has ended */
            204: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getLoginMethods: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Which ways there are */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "password": true,
                     *       "oidc": null
                     *     }
                     */
                    "application/json": components["schemas"]["LoginMethods"];
                };
            };
            /** @description `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    beginSingleSignOn: {
        parameters: {
            query: {
                /**
                 * @description must be an origin of CORS_ORIGIN, or http://127.0.0.1:port/ or http://[::1]:port/
                 * @example http://127.0.0.1:49152/
                 */
                return_to: string;
                /**
                 * @description S256 of your verifier (RFC 7636, 4.2)
                 * @example E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM
                 */
                challenge: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description To the provider */
            302: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable` */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    finishSingleSignOn: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description To `return_to`, with a `code`; for browsers also after a failure */
            302: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `login_not_begun`, `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_allowed` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable` */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    redeemSingleSignOnCode: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "code": "b3RrgVnRBQ0iJbk8mNjwYxcJ5uC4fhq0a9ZqJ2pXzWY",
                 *       "verifier": "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
                 *     }
                 */
                "application/json": components["schemas"]["SingleSignOnCodeInput"];
            };
        };
        responses: {
            /** @description Your account, and a token */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "user": {
                     *         "username": "admin",
                     *         "role": "admin"
                     *       },
                     *       "access_token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZG1pbiJ9.c2lnbmF0dXJl",
                     *       "token_type": "Bearer",
                     *       "expires_in": 3600
                     *     }
                     */
                    "application/json": components["schemas"]["LoggedIn"];
                };
            };
            /** @description `validation_failed`, `malformed_body` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `invalid_credentials` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_allowed` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `body_too_large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable` */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    exchangeToken: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
                 *       "subject_token": "eyJhbGciOi…",
                 *       "subject_token_type": "urn:ietf:params:oauth:token-type:jwt"
                 *     }
                 */
                "application/x-www-form-urlencoded": components["schemas"]["TokenExchangeInput"];
            };
        };
        responses: {
            /** @description A token for 15 minutes at most */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "access_token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZG1pbiJ9.c2lnbmF0dXJl",
                     *       "token_type": "Bearer",
                     *       "expires_in": 3600,
                     *       "issued_token_type": "urn:ietf:params:oauth:token-type:access_token"
                     *     }
                     */
                    "application/json": components["schemas"]["ExchangedToken"];
                };
            };
            /** @description Why not, in the form of OAuth; the log says more. `validation_failed` */
            400: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "error": "invalid_grant",
                     *       "error_description": "No trust admits this token"
                     *     }
                     */
                    "application/json": components["schemas"]["OAuthError"];
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `body_too_large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_requests` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unavailable` */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listTrusts: {
        parameters: {
            query?: {
                page?: number;
                page_size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The trusts */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "trusts": [
                     *         {
                     *           "id": "5b1c8a52-0c1e-4f77-9a55-3f8e2b6d9c11",
                     *           "name": "deploy-site",
                     *           "issuer": "https://token.actions.githubusercontent.com",
                     *           "audience": "https://files.example.com",
                     *           "claims": {
                     *             "repository": "acme/site",
                     *             "ref": "refs/heads/main"
                     *           },
                     *           "role": "viewer",
                     *           "created_at": "2027-01-15T09:30:00.000Z"
                     *         }
                     *       ],
                     *       "pagination": {
                     *         "page": 1,
                     *         "page_size": 50,
                     *         "total_items": 1,
                     *         "total_pages": 1
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["TrustList"];
                };
            };
            /** @description `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    addTrust: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "deploy-site",
                 *       "issuer": "https://token.actions.githubusercontent.com",
                 *       "audience": "https://files.example.com",
                 *       "claims": {
                 *         "repository": "acme/site",
                 *         "ref": "refs/heads/main"
                 *       },
                 *       "role": "viewer"
                 *     }
                 */
                "application/json": components["schemas"]["NewTrustInput"];
            };
        };
        responses: {
            /** @description The trust */
            201: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "5b1c8a52-0c1e-4f77-9a55-3f8e2b6d9c11",
                     *       "name": "deploy-site",
                     *       "issuer": "https://token.actions.githubusercontent.com",
                     *       "audience": "https://files.example.com",
                     *       "claims": {
                     *         "repository": "acme/site",
                     *         "ref": "refs/heads/main"
                     *       },
                     *       "role": "viewer",
                     *       "created_at": "2027-01-15T09:30:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Trust"];
                };
            };
            /** @description `validation_failed`, `malformed_body` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `trust_exists` */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `body_too_large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    removeTrust: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description its `id`, or its name
                 * @example 5b1c8a52-0c1e-4f77-9a55-3f8e2b6d9c11
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed */
            204: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `trust_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listTokens: {
        parameters: {
            query?: {
                page?: number;
                page_size?: number;
                /** @description a username; default: your own. Others: for admins without limits */
                owner?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The tokens, oldest first */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "tokens": [
                     *         {
                     *           "id": "3f0e5a0c-8f3b-4b6e-9a51-6a3c1d2e4f50",
                     *           "name": "certificates of example.com",
                     *           "hint": "qRxy",
                     *           "owner": "admin",
                     *           "role": "viewer",
                     *           "domains": [
                     *             "example.com"
                     *           ],
                     *           "folders": null,
                     *           "writes": null,
                     *           "records": null,
                     *           "networks": null,
                     *           "replace": true,
                     *           "created_at": "2027-01-15T09:30:00.000Z",
                     *           "expires_at": "2027-01-15T09:30:00.000Z",
                     *           "last_used_at": "2027-01-15T09:30:00.000Z"
                     *         }
                     *       ],
                     *       "pagination": {
                     *         "page": 1,
                     *         "page_size": 50,
                     *         "total_items": 1,
                     *         "total_pages": 1
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["TokenList"];
                };
            };
            /** @description `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    createToken: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "certificates of example.com",
                 *       "records": [
                 *         {
                 *           "name": "_acme-challenge",
                 *           "types": [
                 *             "TXT"
                 *           ]
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["NewTokenInput"];
            };
        };
        responses: {
            /** @description The token, shown only now */
            201: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "3f0e5a0c-8f3b-4b6e-9a51-6a3c1d2e4f50",
                     *       "name": "certificates of example.com",
                     *       "hint": "qRxy",
                     *       "owner": "admin",
                     *       "role": "viewer",
                     *       "domains": [
                     *         "example.com"
                     *       ],
                     *       "folders": null,
                     *       "writes": null,
                     *       "records": null,
                     *       "networks": null,
                     *       "replace": true,
                     *       "created_at": "2027-01-15T09:30:00.000Z",
                     *       "expires_at": "2027-01-15T09:30:00.000Z",
                     *       "last_used_at": "2027-01-15T09:30:00.000Z",
                     *       "token": "ds_8GQ3nV0pXhT5cWzK2mLrYbJ7dFsA9eUu0PqRxy"
                     *     }
                     */
                    "application/json": components["schemas"]["CreatedToken"];
                };
            };
            /** @description `validation_failed`, `malformed_body` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `token_exists`, `too_many_tokens` */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `body_too_large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    deleteToken: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @example 3f0e5a0c-8f3b-4b6e-9a51-6a3c1d2e4f50 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Revoked */
            204: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `token_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listUsers: {
        parameters: {
            query?: {
                page?: number;
                page_size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The users */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "users": [
                     *         {
                     *           "username": "alice",
                     *           "role": "viewer",
                     *           "domains": [
                     *             "example.com"
                     *           ],
                     *           "folders": null,
                     *           "writes": null,
                     *           "source": "local",
                     *           "created_at": "2027-01-15T09:30:00.000Z",
                     *           "last_login_at": "2027-01-15T09:30:00.000Z"
                     *         }
                     *       ],
                     *       "pagination": {
                     *         "page": 1,
                     *         "page_size": 50,
                     *         "total_items": 1,
                     *         "total_pages": 1
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["UserList"];
                };
            };
            /** @description `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    createUser: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "username": "alice",
                 *       "role": "viewer"
                 *     }
                 */
                "application/json": components["schemas"]["NewUserInput"];
            };
        };
        responses: {
            /** @description The user, and an invitation if there is no password */
            201: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "username": "alice",
                     *       "role": "viewer",
                     *       "domains": [
                     *         "example.com"
                     *       ],
                     *       "folders": null,
                     *       "writes": null,
                     *       "source": "local",
                     *       "created_at": "2027-01-15T09:30:00.000Z",
                     *       "last_login_at": "2027-01-15T09:30:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["CreatedUser"];
                };
            };
            /** @description `weak_password`, `validation_failed`, `malformed_body` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `user_exists` */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `body_too_large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    deleteUser: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @example alice */
                username: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed */
            204: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `user_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `last_admin` */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    changeUser: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @example alice */
                username: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "role": "viewer"
                 *     }
                 */
                "application/json": components["schemas"]["UserChangeInput"];
            };
        };
        responses: {
            /** @description The changed user, and the invitation if one was wanted */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "username": "alice",
                     *       "role": "viewer",
                     *       "domains": [
                     *         "example.com"
                     *       ],
                     *       "folders": null,
                     *       "writes": null,
                     *       "source": "local",
                     *       "created_at": "2027-01-15T09:30:00.000Z",
                     *       "last_login_at": "2027-01-15T09:30:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["CreatedUser"];
                };
            };
            /** @description `validation_failed`, `malformed_body` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `user_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `last_admin`, `rights_elsewhere` */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `body_too_large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listEvents: {
        parameters: {
            query?: {
                /** @description the `next` of an earlier response, or the id of an event; `latest`: only what happens from now on; default: from the oldest */
                after?: string;
                /** @description comma-separated; default: all */
                types?: string;
                limit?: number;
            };
            header?: {
                /** @description instead of `after`: the id of the last event of an earlier stream. For example `01KEZ5H3C0000ABCDEFGHJKMNP` */
                "last-event-id"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Events, oldest first */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "events": [
                     *         {
                     *           "id": "01KEZ5H3C0000ABCDEFGHJKMNP",
                     *           "type": "files.changed",
                     *           "at": "2027-01-15T09:30:00.000Z",
                     *           "by": "admin",
                     *           "request_id": "9f1c2a4e-5b7d-4c3a-8e6f-0a1b2c3d4e5f",
                     *           "data": {
                     *             "id": 4711,
                     *             "at": "2027-01-15T09:30:00.000Z",
                     *             "by": "admin",
                     *             "token": null,
                     *             "request_id": "9f1c2a4e-5b7d-4c3a-8e6f-0a1b2c3d4e5f",
                     *             "action": "upload",
                     *             "prefix": null,
                     *             "version": null,
                     *             "added": 1,
                     *             "replaced": 0,
                     *             "removed": 0,
                     *             "bytes": 13,
                     *             "paths": [
                     *               "notes/hello.txt"
                     *             ]
                     *           }
                     *         }
                     *       ],
                     *       "next": "01KEZ5H3C0000ABCDEFGHJKMNP"
                     *     }
                     */
                    "application/json": components["schemas"]["EventPage"];
                };
            };
            /** @description `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `events_expired` */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_listeners` */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listWebhooks: {
        parameters: {
            query?: {
                page?: number;
                page_size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The webhooks, oldest first */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "webhooks": [
                     *         {
                     *           "id": "6a1f4e0e-2f5e-4b52-8a1e-9c7d3f0b5a21",
                     *           "url": "https://hooks.example.com/changes",
                     *           "name": "chat",
                     *           "types": null,
                     *           "folders": null,
                     *           "paused": false,
                     *           "created_at": "2027-01-15T09:30:00.000Z",
                     *           "created_by": "admin"
                     *         }
                     *       ],
                     *       "pagination": {
                     *         "page": 1,
                     *         "page_size": 50,
                     *         "total_items": 1,
                     *         "total_pages": 1
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["WebhookList"];
                };
            };
            /** @description `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    createWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "url": "https://hooks.example.com/changes"
                 *     }
                 */
                "application/json": components["schemas"]["NewWebhookInput"];
            };
        };
        responses: {
            /** @description The webhook, with its secret */
            201: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "6a1f4e0e-2f5e-4b52-8a1e-9c7d3f0b5a21",
                     *       "url": "https://hooks.example.com/changes",
                     *       "name": "chat",
                     *       "types": null,
                     *       "folders": null,
                     *       "paused": false,
                     *       "created_at": "2027-01-15T09:30:00.000Z",
                     *       "created_by": "admin",
                     *       "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
                     *     }
                     */
                    "application/json": components["schemas"]["CreatedWebhook"];
                };
            };
            /** @description `webhook_url_refused`, `validation_failed`, `malformed_body` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_webhooks` */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `body_too_large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @example 6a1f4e0e-2f5e-4b52-8a1e-9c7d3f0b5a21 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The webhook */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "6a1f4e0e-2f5e-4b52-8a1e-9c7d3f0b5a21",
                     *       "url": "https://hooks.example.com/changes",
                     *       "name": "chat",
                     *       "types": null,
                     *       "folders": null,
                     *       "paused": false,
                     *       "created_at": "2027-01-15T09:30:00.000Z",
                     *       "created_by": "admin"
                     *     }
                     */
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            /** @description `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `webhook_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    deleteWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @example 6a1f4e0e-2f5e-4b52-8a1e-9c7d3f0b5a21 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted */
            204: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `webhook_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    updateWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @example 6a1f4e0e-2f5e-4b52-8a1e-9c7d3f0b5a21 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "paused": true
                 *     }
                 */
                "application/json": components["schemas"]["WebhookChangesInput"];
            };
        };
        responses: {
            /** @description The changed webhook */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "6a1f4e0e-2f5e-4b52-8a1e-9c7d3f0b5a21",
                     *       "url": "https://hooks.example.com/changes",
                     *       "name": "chat",
                     *       "types": null,
                     *       "folders": null,
                     *       "paused": false,
                     *       "created_at": "2027-01-15T09:30:00.000Z",
                     *       "created_by": "admin"
                     *     }
                     */
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            /** @description `webhook_url_refused`, `validation_failed`, `malformed_body` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `webhook_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `body_too_large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    testWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @example 6a1f4e0e-2f5e-4b52-8a1e-9c7d3f0b5a21 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description How the try ended */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "01KEZ5H3C0000ABCDEFGHJKMNP",
                     *       "type": "webhook.test",
                     *       "status": "delivered",
                     *       "tries": 1,
                     *       "at": "2027-01-15T09:30:00.000Z",
                     *       "next_at": null,
                     *       "ms": 84,
                     *       "response_status": 200,
                     *       "answer": "text"
                     *     }
                     */
                    "application/json": components["schemas"]["Delivery"];
                };
            };
            /** @description `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `webhook_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listDeliveries: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @example 6a1f4e0e-2f5e-4b52-8a1e-9c7d3f0b5a21 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deliveries, the last tried first */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "deliveries": [
                     *         {
                     *           "id": "01KEZ5H3C0000ABCDEFGHJKMNP",
                     *           "type": "webhook.test",
                     *           "status": "delivered",
                     *           "tries": 1,
                     *           "at": "2027-01-15T09:30:00.000Z",
                     *           "next_at": null,
                     *           "ms": 84,
                     *           "response_status": 200,
                     *           "answer": "text"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["DeliveryList"];
                };
            };
            /** @description `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `webhook_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    retryDelivery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @example 6a1f4e0e-2f5e-4b52-8a1e-9c7d3f0b5a21 */
                id: string;
                /** @example 01KEZ5H3C0000ABCDEFGHJKMNP */
                delivery: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is tried soon */
            202: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "01KEZ5H3C0000ABCDEFGHJKMNP",
                     *       "type": "webhook.test",
                     *       "status": "delivered",
                     *       "tries": 1,
                     *       "at": "2027-01-15T09:30:00.000Z",
                     *       "next_at": null,
                     *       "ms": 84,
                     *       "response_status": 200,
                     *       "answer": "text"
                     *     }
                     */
                    "application/json": components["schemas"]["Delivery"];
                };
            };
            /** @description `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `webhook_not_found`, `delivery_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    uploadFile: {
        parameters: {
            query?: never;
            header?: {
                /** @description Only if the stored file has this ETag; `*`: only if there is one. For example `"ea65beb02cd7af588b52298bc8e4c0af"` */
                "if-match"?: string;
                /** @description Only if there is no file that was stored after this date; ignored with If-Match. For example `Fri, 15 Jan 2027 09:30:00 GMT` */
                "if-unmodified-since"?: string;
                /** @description `*`: only if there is no such file. For example `*` */
                "if-none-match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "file": "Hello, files\n",
                 *       "path": "notes/"
                 *     }
                 */
                "multipart/form-data": {
                    /** Format: binary */
                    file: Blob;
                    /**
                     * @description whole path, or a directory with a trailing slash; default: the file name
                     * @example notes/
                     */
                    path?: string;
                };
            };
        };
        responses: {
            /** @description Replaced: the record of the file */
            200: {
                headers: {
                    /**
                     * @description URL of the record
                     * @example /api/files/notes/hello.txt
                     */
                    location?: string;
                    /**
                     * @description Changes with every change of the record
                     * @example "ea65beb02cd7af588b52298bc8e4c0af"
                     */
                    etag?: string;
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "path": "notes/hello.txt",
                     *       "name": "hello.txt",
                     *       "category": "document",
                     *       "content_type": "text/plain",
                     *       "size": 13,
                     *       "sha256": "a1725bba7370e40aa78d688cc99089fcdf3d7a9d85e11e430ab83a8dceb755dc",
                     *       "url": "/static/notes/hello.txt",
                     *       "public": true,
                     *       "uploaded_by": "admin",
                     *       "created_at": "2027-01-15T09:30:00.000Z",
                     *       "updated_at": "2027-01-15T09:30:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["StoredFile"];
                };
            };
            /** @description Created: the record of the file */
            201: {
                headers: {
                    /**
                     * @description URL of the record
                     * @example /api/files/notes/hello.txt
                     */
                    location?: string;
                    /**
                     * @description Changes with every change of the record
                     * @example "ea65beb02cd7af588b52298bc8e4c0af"
                     */
                    etag?: string;
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "path": "notes/hello.txt",
                     *       "name": "hello.txt",
                     *       "category": "document",
                     *       "content_type": "text/plain",
                     *       "size": 13,
                     *       "sha256": "a1725bba7370e40aa78d688cc99089fcdf3d7a9d85e11e430ab83a8dceb755dc",
                     *       "url": "/static/notes/hello.txt",
                     *       "public": true,
                     *       "uploaded_by": "admin",
                     *       "created_at": "2027-01-15T09:30:00.000Z",
                     *       "updated_at": "2027-01-15T09:30:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["StoredFile"];
                };
            };
            /** @description `invalid_path`, `reserved_path`, `malformed_body`, `file_missing`, `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `file_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `path_conflict` */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed` */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `file_too_large`, `too_many_files` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`, `quota_exceeded` */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    uploadFiles: {
        parameters: {
            query?: never;
            header?: {
                /** @description Only if the stored file has this ETag; `*`: only if there is one. For example `"ea65beb02cd7af588b52298bc8e4c0af"` */
                "if-match"?: string;
                /** @description Only if there is no file that was stored after this date; ignored with If-Match. For example `Fri, 15 Jan 2027 09:30:00 GMT` */
                "if-unmodified-since"?: string;
                /** @description `*`: only if there is no such file. For example `*` */
                "if-none-match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "files": [
                 *         "Hello, files\n"
                 *       ],
                 *       "path": "notes"
                 *     }
                 */
                "multipart/form-data": {
                    files: Blob[];
                    /**
                     * @description directory of all files
                     * @example notes
                     */
                    path?: string;
                };
            };
        };
        responses: {
            /** @description The records in the order sent */
            201: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "files": [
                     *         {
                     *           "path": "notes/hello.txt",
                     *           "name": "hello.txt",
                     *           "category": "document",
                     *           "content_type": "text/plain",
                     *           "size": 13,
                     *           "sha256": "a1725bba7370e40aa78d688cc99089fcdf3d7a9d85e11e430ab83a8dceb755dc",
                     *           "url": "/static/notes/hello.txt",
                     *           "public": true,
                     *           "uploaded_by": "admin",
                     *           "created_at": "2027-01-15T09:30:00.000Z",
                     *           "updated_at": "2027-01-15T09:30:00.000Z"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        files: components["schemas"]["StoredFile"][];
                    };
                };
            };
            /** @description `invalid_path`, `reserved_path`, `malformed_body`, `file_missing`, `duplicate_path`, `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `file_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `path_conflict` */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed` */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `file_too_large`, `too_many_files` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`, `quota_exceeded` */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    createUpload: {
        parameters: {
            query?: {
                /**
                 * @description Directory of `filename`
                 * @example notes
                 */
                folder?: string;
            };
            header?: {
                /** @description Version of the protocol, the only one. For example `1.0.0` */
                "tus-resumable"?: string;
                /** @description Bytes of the file. For example `104857600` */
                "upload-length"?: string;
                /** @description `path`, `filename`, `overwrite`, `if_match`, each in base64; others are kept. For example `path bm90ZXMvaGVsbG8udHh0` */
                "upload-metadata"?: string;
                /** @description Where the bytes of a PATCH belong. For example `8388608` */
                "upload-offset"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Created; with all bytes, the file is stored */
            201: {
                headers: {
                    /**
                     * @description URL of a new upload
                     * @example /api/uploads/5f0c1a52
                     */
                    location?: string;
                    /**
                     * @description Bytes that are durable
                     * @example 8388608
                     */
                    "upload-offset"?: string;
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `malformed_request`, `concatenation_not_supported`, `invalid_path`, `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `upload_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `offset_conflict`, `path_conflict` */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `upload_ended` */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `tus_version_not_supported`, `precondition_failed` */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `upload_length_exceeded`, `file_too_large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `upload_locked` */
            423: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_uploads` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `checksum_mismatch` */
            460: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`, `quota_exceeded` */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    deleteUpload: {
        parameters: {
            query?: never;
            header?: {
                /** @description Version of the protocol, the only one. For example `1.0.0` */
                "tus-resumable"?: string;
                /** @description Bytes of the file. For example `104857600` */
                "upload-length"?: string;
                /** @description `path`, `filename`, `overwrite`, `if_match`, each in base64; others are kept. For example `path bm90ZXMvaGVsbG8udHh0` */
                "upload-metadata"?: string;
                /** @description Where the bytes of a PATCH belong. For example `8388608` */
                "upload-offset"?: string;
            };
            path: {
                /** @example 5f0c1a52 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed */
            204: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `malformed_request`, `concatenation_not_supported`, `invalid_path`, `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `upload_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `offset_conflict`, `path_conflict` */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `upload_ended` */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `tus_version_not_supported`, `precondition_failed` */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `upload_length_exceeded`, `file_too_large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `upload_locked` */
            423: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_uploads` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `checksum_mismatch` */
            460: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`, `quota_exceeded` */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    appendToUpload: {
        parameters: {
            query?: never;
            header?: {
                /** @description Version of the protocol, the only one. For example `1.0.0` */
                "tus-resumable"?: string;
                /** @description Bytes of the file. For example `104857600` */
                "upload-length"?: string;
                /** @description `path`, `filename`, `overwrite`, `if_match`, each in base64; others are kept. For example `path bm90ZXMvaGVsbG8udHh0` */
                "upload-metadata"?: string;
                /** @description Where the bytes of a PATCH belong. For example `8388608` */
                "upload-offset"?: string;
            };
            path: {
                /** @example 5f0c1a52 */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /** @example Hello, files */
                "application/offset+octet-stream": Blob;
            };
        };
        responses: {
            /** @description The bytes are durable */
            204: {
                headers: {
                    /**
                     * @description URL of a new upload
                     * @example /api/uploads/5f0c1a52
                     */
                    location?: string;
                    /**
                     * @description Bytes that are durable
                     * @example 8388608
                     */
                    "upload-offset"?: string;
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `malformed_request`, `concatenation_not_supported`, `invalid_path`, `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `upload_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `offset_conflict`, `path_conflict` */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `upload_ended` */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `tus_version_not_supported`, `precondition_failed` */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `upload_length_exceeded`, `file_too_large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `upload_locked` */
            423: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_uploads` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `checksum_mismatch` */
            460: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`, `quota_exceeded` */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listFiles: {
        parameters: {
            query?: {
                page?: number;
                page_size?: number;
                /** @description the `next` of the page before */
                after?: string;
                /** @description only files of this category */
                category?: "image" | "video" | "audio" | "font" | "document" | "archive" | "code" | "data" | "other";
                /** @description part of the path, case-insensitive */
                search?: string;
                /** @description only files below this directory */
                prefix?: string;
                /** @description false: only files directly in the directory */
                recursive?: boolean;
                /** @description with a leading -: descending */
                sort?: "path" | "-path" | "updated_at" | "-updated_at" | "size" | "-size";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "files": [
                     *         {
                     *           "path": "notes/hello.txt",
                     *           "name": "hello.txt",
                     *           "category": "document",
                     *           "content_type": "text/plain",
                     *           "size": 13,
                     *           "sha256": "a1725bba7370e40aa78d688cc99089fcdf3d7a9d85e11e430ab83a8dceb755dc",
                     *           "url": "/static/notes/hello.txt",
                     *           "public": true,
                     *           "uploaded_by": "admin",
                     *           "created_at": "2027-01-15T09:30:00.000Z",
                     *           "updated_at": "2027-01-15T09:30:00.000Z"
                     *         }
                     *       ],
                     *       "pagination": {
                     *         "page": 1,
                     *         "page_size": 50,
                     *         "total_items": 1,
                     *         "total_pages": 1
                     *       },
                     *       "next": null
                     *     }
                     */
                    "application/json": {
                        files: components["schemas"]["StoredFile"][];
                        pagination: {
                            page: number;
                            /** @example 50 */
                            page_size: number;
                            total_items: number;
                            total_pages: number;
                            /**
                             * @description total_items is a lower bound
                             * @constant
                             */
                            total_is_exact?: false;
                        };
                        /**
                         * @description send it as `after` for the following rows; null: there are none
                         * @example null
                         */
                        next: string | null;
                    };
                };
            };
            /** @description `invalid_path`, `reserved_path`, `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `directory_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listCategories: {
        parameters: {
            query?: {
                /** @description only files below this directory */
                prefix?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The categories with at least one file */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "categories": [
                     *         {
                     *           "category": "image",
                     *           "file_count": 1,
                     *           "total_size": 1
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        categories: components["schemas"]["Category"][];
                    };
                };
            };
            /** @description `invalid_path`, `reserved_path`, `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `directory_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getTree: {
        parameters: {
            query?: {
                /** @description the directory to start at */
                prefix?: string;
                /** @description number of levels to open */
                depth?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The directory and what lies below it */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "tree": {
                     *         "name": "notes",
                     *         "path": "notes",
                     *         "type": "directory",
                     *         "file_count": 1,
                     *         "total_size": 1,
                     *         "children": [
                     *           {
                     *             "name": "notes",
                     *             "path": "notes",
                     *             "type": "directory",
                     *             "file_count": 1,
                     *             "total_size": 1,
                     *             "children": [
                     *               {
                     *                 "name": "hello.txt",
                     *                 "path": "notes/hello.txt",
                     *                 "type": "file",
                     *                 "size": 13,
                     *                 "content_type": "text/plain"
                     *               }
                     *             ]
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": {
                        tree: components["schemas"]["DirectoryNode"];
                    };
                };
            };
            /** @description `invalid_path`, `reserved_path`, `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `directory_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getFile: {
        parameters: {
            query?: never;
            header?: {
                /** @description ETag of a cached copy: 304 if still current. For example `"ea65beb02cd7af588b52298bc8e4c0af"` */
                "if-none-match"?: string;
            };
            path: {
                /**
                 * @description path of a file, its slashes not percent-encoded
                 * @example notes/hello.txt
                 */
                path: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The record of the file */
            200: {
                headers: {
                    /**
                     * @description Changes with every change of the record
                     * @example "ea65beb02cd7af588b52298bc8e4c0af"
                     */
                    etag?: string;
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "path": "notes/hello.txt",
                     *       "name": "hello.txt",
                     *       "category": "document",
                     *       "content_type": "text/plain",
                     *       "size": 13,
                     *       "sha256": "a1725bba7370e40aa78d688cc99089fcdf3d7a9d85e11e430ab83a8dceb755dc",
                     *       "url": "/static/notes/hello.txt",
                     *       "public": true,
                     *       "uploaded_by": "admin",
                     *       "created_at": "2027-01-15T09:30:00.000Z",
                     *       "updated_at": "2027-01-15T09:30:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["StoredFile"];
                };
            };
            /** @description Not modified since the record of If-None-Match */
            304: {
                headers: {
                    /**
                     * @description Changes with every change of the record
                     * @example "ea65beb02cd7af588b52298bc8e4c0af"
                     */
                    etag?: string;
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `invalid_path`, `reserved_path`, `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `file_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    putFile: {
        parameters: {
            query?: never;
            header?: {
                /** @description Only if the stored file has this ETag; `*`: only if there is one. For example `"ea65beb02cd7af588b52298bc8e4c0af"` */
                "if-match"?: string;
                /** @description Only if there is no file that was stored after this date; ignored with If-Match. For example `Fri, 15 Jan 2027 09:30:00 GMT` */
                "if-unmodified-since"?: string;
                /** @description `*`: only if there is no such file. For example `*` */
                "if-none-match"?: string;
                /** @description SHA-256 of the body (RFC 9530), checked before anything is stored. For example `sha-256=:oXJbunNw5AqnjWiMyZCJ/N89ep2F4R5DCrg6jc63Vdw=:` */
                "content-digest"?: string;
            };
            path: {
                /**
                 * @description path of a file, its slashes not percent-encoded
                 * @example notes/hello.txt
                 */
                path: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /** @example Hello, files */
                "application/octet-stream": Blob;
            };
        };
        responses: {
            /** @description Replaced: the record of the file */
            200: {
                headers: {
                    /**
                     * @description URL of the record
                     * @example /api/files/notes/hello.txt
                     */
                    location?: string;
                    /**
                     * @description Changes with every change of the record
                     * @example "ea65beb02cd7af588b52298bc8e4c0af"
                     */
                    etag?: string;
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "path": "notes/hello.txt",
                     *       "name": "hello.txt",
                     *       "category": "document",
                     *       "content_type": "text/plain",
                     *       "size": 13,
                     *       "sha256": "a1725bba7370e40aa78d688cc99089fcdf3d7a9d85e11e430ab83a8dceb755dc",
                     *       "url": "/static/notes/hello.txt",
                     *       "public": true,
                     *       "uploaded_by": "admin",
                     *       "created_at": "2027-01-15T09:30:00.000Z",
                     *       "updated_at": "2027-01-15T09:30:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["StoredFile"];
                };
            };
            /** @description Created: the record of the file */
            201: {
                headers: {
                    /**
                     * @description URL of the record
                     * @example /api/files/notes/hello.txt
                     */
                    location?: string;
                    /**
                     * @description Changes with every change of the record
                     * @example "ea65beb02cd7af588b52298bc8e4c0af"
                     */
                    etag?: string;
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "path": "notes/hello.txt",
                     *       "name": "hello.txt",
                     *       "category": "document",
                     *       "content_type": "text/plain",
                     *       "size": 13,
                     *       "sha256": "a1725bba7370e40aa78d688cc99089fcdf3d7a9d85e11e430ab83a8dceb755dc",
                     *       "url": "/static/notes/hello.txt",
                     *       "public": true,
                     *       "uploaded_by": "admin",
                     *       "created_at": "2027-01-15T09:30:00.000Z",
                     *       "updated_at": "2027-01-15T09:30:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["StoredFile"];
                };
            };
            /** @description `invalid_path`, `digest_mismatch`, `malformed_request`, `reserved_path`, `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `file_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `path_conflict` */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed` */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `file_too_large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`, `quota_exceeded` */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    deleteFile: {
        parameters: {
            query?: never;
            header?: {
                /** @description Only if the stored file has this ETag; `*`: only if there is one. For example `"ea65beb02cd7af588b52298bc8e4c0af"` */
                "if-match"?: string;
                /** @description Only if there is no file that was stored after this date; ignored with If-Match. For example `Fri, 15 Jan 2027 09:30:00 GMT` */
                "if-unmodified-since"?: string;
            };
            path: {
                /**
                 * @description path of a file, its slashes not percent-encoded
                 * @example notes/hello.txt
                 */
                path: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted */
            204: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `invalid_path`, `reserved_path`, `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `file_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed` */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    moveFiles: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "from": "notes/",
                 *       "to": "archive/notes/"
                 *     }
                 */
                "application/json": components["schemas"]["MoveInput"];
            };
        };
        responses: {
            /** @description Moved */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "files_moved": 1
                     *     }
                     */
                    "application/json": {
                        files_moved: number;
                    };
                };
            };
            /** @description `invalid_path`, `reserved_path`, `validation_failed`, `malformed_body` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `file_not_found`, `directory_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `path_conflict` */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `body_too_large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage` */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    moveFileBatch: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "moves": [
                 *         {
                 *           "from": "notes/",
                 *           "to": "archive/notes/"
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["MoveBatchInput"];
            };
        };
        responses: {
            /** @description Moved */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "files_moved": 1
                     *     }
                     */
                    "application/json": {
                        files_moved: number;
                    };
                };
            };
            /** @description `invalid_path`, `reserved_path`, `duplicate_path`, `validation_failed`, `malformed_body` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `file_not_found`, `directory_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `path_conflict` */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `tree_too_large`, `body_too_large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage` */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    deleteFiles: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "paths": [
                 *         "notes/hello.txt"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["DeletionInput"];
            };
        };
        responses: {
            /** @description Deleted */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "files_deleted": 1,
                     *       "bytes_freed": 1
                     *     }
                     */
                    "application/json": {
                        files_deleted: number;
                        /** @description of contents that no other file has; they leave the disk when the history does not need them any more. For callers limited to folders: of the files */
                        bytes_freed: number;
                    };
                };
            };
            /** @description `invalid_path`, `duplicate_path`, `validation_failed`, `malformed_body` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `file_not_found`, `directory_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `body_too_large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage` */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listVersions: {
        parameters: {
            query?: {
                page?: number;
                page_size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "versions": [
                     *         {
                     *           "id": 1,
                     *           "version": "1.4.0",
                     *           "changelog": "Dark mode and a faster start.",
                     *           "created_by": "admin",
                     *           "created_at": "2027-01-15T09:30:00.000Z",
                     *           "change": 1,
                     *           "files_kept": true
                     *         }
                     *       ],
                     *       "pagination": {
                     *         "page": 1,
                     *         "page_size": 50,
                     *         "total_items": 1,
                     *         "total_pages": 1
                     *       }
                     *     }
                     */
                    "application/json": {
                        versions: components["schemas"]["ListedVersion"][];
                        pagination: components["schemas"]["Pagination"];
                    };
                };
            };
            /** @description `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    createVersion: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "version": "1.4.0",
                 *       "changelog": "Dark mode and a faster start."
                 *     }
                 */
                "application/json": components["schemas"]["NewVersionInput"];
            };
        };
        responses: {
            /** @description The recorded version, now the current one */
            201: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": 1,
                     *       "version": "1.4.0",
                     *       "changelog": "Dark mode and a faster start.",
                     *       "created_by": "admin",
                     *       "created_at": "2027-01-15T09:30:00.000Z",
                     *       "change": 1,
                     *       "files_kept": true
                     *     }
                     */
                    "application/json": components["schemas"]["Version"];
                };
            };
            /** @description `validation_failed`, `malformed_body` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `version_exists` */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `body_too_large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getCurrentVersion: {
        parameters: {
            query?: never;
            header?: {
                /** @description ETag of a cached copy: 304 if still current. For example `"ea65beb02cd7af588b52298bc8e4c0af"` */
                "if-none-match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The newest version */
            200: {
                headers: {
                    /**
                     * @description Changes with every change of the record
                     * @example "ea65beb02cd7af588b52298bc8e4c0af"
                     */
                    etag?: string;
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": 1,
                     *       "version": "1.4.0",
                     *       "changelog": "Dark mode and a faster start.",
                     *       "created_by": "admin",
                     *       "created_at": "2027-01-15T09:30:00.000Z",
                     *       "change": 1,
                     *       "files_kept": true
                     *     }
                     */
                    "application/json": components["schemas"]["Version"];
                };
            };
            /** @description Not modified since the version of If-None-Match */
            304: {
                headers: {
                    /**
                     * @description Changes with every change of the record
                     * @example "ea65beb02cd7af588b52298bc8e4c0af"
                     */
                    etag?: string;
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `no_version` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getVersion: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description name of the version
                 * @example 1.4.0
                 */
                version: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The version */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": 1,
                     *       "version": "1.4.0",
                     *       "changelog": "Dark mode and a faster start.",
                     *       "created_by": "admin",
                     *       "created_at": "2027-01-15T09:30:00.000Z",
                     *       "change": 1,
                     *       "files_kept": true
                     *     }
                     */
                    "application/json": components["schemas"]["Version"];
                };
            };
            /** @description `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `version_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getStats: {
        parameters: {
            query?: {
                /** @description only files below this directory */
                prefix?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Files, bytes, categories and versions */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "total_files": 1,
                     *       "total_size": 1,
                     *       "stored_size": 1,
                     *       "past_size": 1,
                     *       "categories": [
                     *         {
                     *           "category": "image",
                     *           "file_count": 1,
                     *           "total_size": 1
                     *         }
                     *       ],
                     *       "versions": 1
                     *     }
                     */
                    "application/json": components["schemas"]["Stats"];
                };
            };
            /** @description `invalid_path`, `reserved_path`, `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `directory_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listChanges: {
        parameters: {
            query?: {
                page?: number;
                page_size?: number;
                /** @description the `next` of the page before */
                after?: string;
                /** @description only changes of a file below this directory */
                prefix?: string;
                /** @description only changes of this user */
                by?: string;
                /** @description only changes of this kind */
                action?: "upload" | "delete" | "move" | "deploy" | "restore" | "revert";
                /** @description only changes at this time or later */
                since?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "changes": [
                     *         {
                     *           "id": 4711,
                     *           "at": "2027-01-15T09:30:00.000Z",
                     *           "by": "admin",
                     *           "token": null,
                     *           "request_id": "9f1c2a4e-5b7d-4c3a-8e6f-0a1b2c3d4e5f",
                     *           "action": "upload",
                     *           "prefix": null,
                     *           "version": null,
                     *           "added": 1,
                     *           "replaced": 0,
                     *           "removed": 0,
                     *           "bytes": 13,
                     *           "paths": [
                     *             "notes/hello.txt"
                     *           ]
                     *         }
                     *       ],
                     *       "pagination": {
                     *         "page": 1,
                     *         "page_size": 50,
                     *         "total_items": 1,
                     *         "total_pages": 1
                     *       },
                     *       "next": null
                     *     }
                     */
                    "application/json": {
                        changes: components["schemas"]["Change"][];
                        pagination: components["schemas"]["Pagination"];
                        /**
                         * @description send it as `after` for the following rows; null: there are none
                         * @example null
                         */
                        next: string | null;
                    };
                };
            };
            /** @description `invalid_path`, `reserved_path`, `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `directory_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getChange: {
        parameters: {
            query?: {
                page?: number;
                page_size?: number;
                /** @description the `next` of the page before */
                after?: string;
            };
            header?: never;
            path: {
                /**
                 * @description number of a change
                 * @example 4711
                 */
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The change and a page of its files */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": 1,
                     *       "at": "2027-01-15T09:30:00.000Z",
                     *       "by": "admin",
                     *       "token": "text",
                     *       "request_id": "text",
                     *       "action": "upload",
                     *       "prefix": "text",
                     *       "version": "text",
                     *       "added": 1,
                     *       "replaced": 1,
                     *       "removed": 1,
                     *       "bytes": 1,
                     *       "paths": [
                     *         "text"
                     *       ],
                     *       "files": [
                     *         {
                     *           "path": "notes/hello.txt",
                     *           "before": null,
                     *           "after": {
                     *             "sha256": "a1725bba7370e40aa78d688cc99089fcdf3d7a9d85e11e430ab83a8dceb755dc",
                     *             "size": 13
                     *           }
                     *         }
                     *       ],
                     *       "pagination": {
                     *         "page": 1,
                     *         "page_size": 50,
                     *         "total_items": 1,
                     *         "total_pages": 1
                     *       },
                     *       "next": null
                     *     }
                     */
                    "application/json": {
                        /** @description grows with time; some numbers are no change */
                        id: number;
                        /** Format: date-time */
                        at: string;
                        /**
                         * @description username
                         * @example admin
                         */
                        by: string;
                        /** @description name of the API token that was used */
                        token: string | null;
                        request_id: string;
                        /** @enum {string} */
                        action: "upload" | "delete" | "move" | "deploy" | "restore" | "revert";
                        /** @description the directory that the request named */
                        prefix: string | null;
                        /** @description the version recorded with the change */
                        version: string | null;
                        added: number;
                        replaced: number;
                        removed: number;
                        /** @description of the files stored; of those removed if none was stored */
                        bytes: number;
                        /** @description up to ten of the paths */
                        paths: string[];
                        /**
                         * @description files of it have been forgotten: only their paths are known
                         * @constant
                         */
                        forgotten?: true;
                        files: components["schemas"]["ChangedFile"][];
                        pagination: components["schemas"]["Pagination"];
                        /**
                         * @description send it as `after` for the following rows; null: there are none
                         * @example null
                         */
                        next: string | null;
                    };
                };
            };
            /** @description `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `change_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    revertChange: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description number of a change
                 * @example 4711
                 */
                id: number;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "overwrite": true
                 *     }
                 */
                "application/json": {
                    /** @description also files that were changed since; default: false */
                    overwrite?: boolean;
                } | null;
            };
        };
        responses: {
            /** @description The new change */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": 4711,
                     *       "at": "2027-01-15T09:30:00.000Z",
                     *       "by": "admin",
                     *       "token": null,
                     *       "request_id": "9f1c2a4e-5b7d-4c3a-8e6f-0a1b2c3d4e5f",
                     *       "action": "upload",
                     *       "prefix": null,
                     *       "version": null,
                     *       "added": 1,
                     *       "replaced": 0,
                     *       "removed": 0,
                     *       "bytes": 13,
                     *       "paths": [
                     *         "notes/hello.txt"
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Change"];
                };
            };
            /** @description `validation_failed`, `malformed_body` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `change_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `revert_conflict`, `path_conflict` */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `history_gone` */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `body_too_large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`, `quota_exceeded` */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getTreeFiles: {
        parameters: {
            query?: {
                /**
                 * @description as it was then: a change id (digits alone), a version or an RFC 3339 instant
                 * @example 4711
                 */
                at?: string;
            };
            header?: {
                /** @description ETag of a cached copy: 304 if still current. For example `"ea65beb02cd7af588b52298bc8e4c0af"` */
                "if-none-match"?: string;
                /** @description The form of the tree. For example `application/zip` */
                accept?: string;
            };
            path: {
                /**
                 * @description a directory with a trailing slash; empty: the whole store
                 * @example site/
                 */
                path: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The tree */
            200: {
                headers: {
                    /**
                     * @description Of all names and contents of the tree: the same for each of its forms
                     * @example "c1d8ab3e0f2b4c5d8e9f0a1b2c3d4e5f"
                     */
                    etag?: string;
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "prefix": "site/",
                     *       "files": {
                     *         "index.html": {
                     *           "sha256": "a1725bba7370e40aa78d688cc99089fcdf3d7a9d85e11e430ab83a8dceb755dc",
                     *           "size": 13
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["TreeFiles"];
                    "*/*": Blob;
                };
            };
            /** @description Not modified since the tree of If-None-Match */
            304: {
                headers: {
                    /**
                     * @description Of all names and contents of the tree: the same for each of its forms
                     * @example "c1d8ab3e0f2b4c5d8e9f0a1b2c3d4e5f"
                     */
                    etag?: string;
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `invalid_path`, `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `directory_not_found`, `version_not_found`, `change_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `history_gone` */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    putTree: {
        parameters: {
            query?: {
                /** @description merge: files that the body does not name stay */
                mode?: "replace" | "merge";
                /** @description records this version with the change */
                version?: string;
                /** @description of the version */
                changelog?: string;
                /** @description true: only says what would change */
                dry_run?: boolean;
            };
            header?: {
                /** @description Only if the tree has this ETag. For example `"c1d8ab3e0f2b4c5d8e9f0a1b2c3d4e5f"` */
                "if-match"?: string;
                /** @description `*`: only if there is no file yet. For example `*` */
                "if-none-match"?: string;
            };
            path: {
                /**
                 * @description a directory with a trailing slash; empty: the whole store
                 * @example site/
                 */
                path: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /** @example { "from": "previews/pr-12/" } */
                "application/x-tar": Blob;
                /** @example { "from": "previews/pr-12/" } */
                "application/gzip": Blob;
                /** @example { "from": "previews/pr-12/" } */
                "application/zstd": Blob;
                /** @example { "from": "previews/pr-12/" } */
                "application/zip": Blob;
                /** @example { "from": "previews/pr-12/" } */
                "application/json": Blob;
            };
        };
        responses: {
            /** @description The tree is what the body is */
            200: {
                headers: {
                    /**
                     * @description Of all names and contents of the tree: the same for each of its forms
                     * @example "c1d8ab3e0f2b4c5d8e9f0a1b2c3d4e5f"
                     */
                    etag?: string;
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "change": {
                     *         "id": 4711,
                     *         "at": "2027-01-15T09:30:00.000Z",
                     *         "by": "admin",
                     *         "token": null,
                     *         "request_id": "9f1c2a4e-5b7d-4c3a-8e6f-0a1b2c3d4e5f",
                     *         "action": "upload",
                     *         "prefix": null,
                     *         "version": null,
                     *         "added": 1,
                     *         "replaced": 0,
                     *         "removed": 0,
                     *         "bytes": 13,
                     *         "paths": [
                     *           "notes/hello.txt"
                     *         ]
                     *       },
                     *       "prefix": "site/",
                     *       "files": 1,
                     *       "added": 1,
                     *       "replaced": 1,
                     *       "removed": 1,
                     *       "unchanged": 1,
                     *       "bytes_received": 1
                     *     }
                     */
                    "application/json": components["schemas"]["TreeResult"];
                };
            };
            /** @description `invalid_path`, `invalid_archive`, `malformed_body`, `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `directory_not_found`, `version_not_found`, `change_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `path_conflict`, `contents_missing`, `version_exists` */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `history_gone` */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed` */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `tree_too_large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`, `quota_exceeded` */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listAccessRules: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The rules by prefix */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "rules": [
                     *         {
                     *           "prefix": "drafts/",
                     *           "public": true,
                     *           "by": "admin",
                     *           "at": "2027-01-15T09:30:00.000Z"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["AccessRules"];
                };
            };
            /** @description `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    setAccessRule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description a folder
                 * @example drafts/
                 */
                path: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "public": false
                 *     }
                 */
                "application/json": components["schemas"]["NewAccessRuleInput"];
            };
        };
        responses: {
            /** @description The rule */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "prefix": "drafts/",
                     *       "public": true,
                     *       "by": "admin",
                     *       "at": "2027-01-15T09:30:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["AccessRule"];
                };
            };
            /** @description `invalid_path`, `reserved_path`, `validation_failed`, `malformed_body` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `body_too_large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    removeAccessRule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description a folder
                 * @example drafts/
                 */
                path: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed */
            204: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `invalid_path`, `reserved_path`, `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `rule_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getHistory: {
        parameters: {
            query: {
                /**
                 * @description path of a file, deleted or not
                 * @example notes/hello.txt
                 */
                path: string;
                page?: number;
                page_size?: number;
                /** @description the `next` of the page before */
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the states */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "history": [
                     *         {
                     *           "change": 1,
                     *           "at": "2027-01-15T09:30:00.000Z",
                     *           "by": "admin",
                     *           "action": "upload",
                     *           "sha256": "a1725bba7370e40aa78d688cc99089fcdf3d7a9d85e11e430ab83a8dceb755dc",
                     *           "size": 13,
                     *           "content_type": "text/plain",
                     *           "is_current": true
                     *         }
                     *       ],
                     *       "pagination": {
                     *         "page": 1,
                     *         "page_size": 50,
                     *         "total_items": 1,
                     *         "total_pages": 1
                     *       },
                     *       "next": null
                     *     }
                     */
                    "application/json": {
                        history: components["schemas"]["PathState"][];
                        pagination: components["schemas"]["Pagination"];
                        /**
                         * @description send it as `after` for the following rows; null: there are none
                         * @example null
                         */
                        next: string | null;
                    };
                };
            };
            /** @description `invalid_path`, `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `file_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getPastContent: {
        parameters: {
            query: {
                /**
                 * @description path of a file, deleted or not
                 * @example notes/hello.txt
                 */
                path: string;
                /**
                 * @description number of a change
                 * @example 4711
                 */
                change: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The bytes, with their content type */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "*/*": Blob;
                };
            };
            /** @description The selected ranges */
            206: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "*/*": Blob;
                };
            };
            /** @description The bytes are those of the condition */
            304: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `invalid_path`, `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `file_not_found`, `change_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `history_gone` */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed` */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `range_not_satisfiable` */
            416: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listVersionFiles: {
        parameters: {
            query?: {
                page?: number;
                page_size?: number;
                /** @description the `next` of the page before */
                after?: string;
                /** @description only files of this category */
                category?: "image" | "video" | "audio" | "font" | "document" | "archive" | "code" | "data" | "other";
                /** @description part of the path, case-insensitive */
                search?: string;
                /** @description only files below this directory */
                prefix?: string;
                /** @description false: only files directly in the directory */
                recursive?: boolean;
                /** @description with a leading -: descending */
                sort?: "path" | "-path" | "updated_at" | "-updated_at" | "size" | "-size";
            };
            header?: never;
            path: {
                /**
                 * @description name of the version
                 * @example 1.4.0
                 */
                version: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "files": [
                     *         {
                     *           "path": "notes/hello.txt",
                     *           "name": "hello.txt",
                     *           "category": "document",
                     *           "content_type": "text/plain",
                     *           "size": 13,
                     *           "sha256": "a1725bba7370e40aa78d688cc99089fcdf3d7a9d85e11e430ab83a8dceb755dc",
                     *           "url": "/static/notes/hello.txt",
                     *           "public": true,
                     *           "uploaded_by": "admin",
                     *           "created_at": "2027-01-15T09:30:00.000Z",
                     *           "updated_at": "2027-01-15T09:30:00.000Z"
                     *         }
                     *       ],
                     *       "pagination": {
                     *         "page": 1,
                     *         "page_size": 50,
                     *         "total_items": 1,
                     *         "total_pages": 1
                     *       },
                     *       "next": null
                     *     }
                     */
                    "application/json": {
                        files: components["schemas"]["StoredFile"][];
                        pagination: {
                            page: number;
                            /** @example 50 */
                            page_size: number;
                            total_items: number;
                            total_pages: number;
                            /**
                             * @description total_items is a lower bound
                             * @constant
                             */
                            total_is_exact?: false;
                        };
                        /**
                         * @description send it as `after` for the following rows; null: there are none
                         * @example null
                         */
                        next: string | null;
                    };
                };
            };
            /** @description `invalid_path`, `reserved_path`, `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `version_not_found`, `directory_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `history_gone` */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    compareVersions: {
        parameters: {
            query?: {
                page?: number;
                page_size?: number;
                /** @description the `next` of the page before */
                after?: string;
                /** @description only files below this directory */
                prefix?: string;
                /** @description name of the other version; `current`: the files as they are */
                to?: string;
            };
            header?: never;
            path: {
                /**
                 * @description name of the version
                 * @example 1.4.0
                 */
                version: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the differences */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "added": [
                     *         {
                     *           "path": "notes/hello.txt",
                     *           "before": null,
                     *           "after": {
                     *             "sha256": "a1725bba7370e40aa78d688cc99089fcdf3d7a9d85e11e430ab83a8dceb755dc",
                     *             "size": 13
                     *           }
                     *         }
                     *       ],
                     *       "removed": [],
                     *       "changed": [],
                     *       "pagination": {
                     *         "page": 1,
                     *         "page_size": 50,
                     *         "total_items": 1,
                     *         "total_pages": 1
                     *       },
                     *       "next": null
                     *     }
                     */
                    "application/json": {
                        added: components["schemas"]["ChangedFile"][];
                        /** @example [] */
                        removed: components["schemas"]["ChangedFile"][];
                        /** @example [] */
                        changed: components["schemas"]["ChangedFile"][];
                        pagination: components["schemas"]["Pagination"];
                        /**
                         * @description send it as `after` for the following rows; null: there are none
                         * @example null
                         */
                        next: string | null;
                    };
                };
            };
            /** @description `invalid_path`, `reserved_path`, `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `version_not_found`, `directory_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `history_gone` */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    putContent: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description SHA-256 of the body
                 * @example a1725bba7370e40aa78d688cc99089fcdf3d7a9d85e11e430ab83a8dceb755dc
                 */
                sha256: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /** @example Hello, files */
                "application/octet-stream": Blob;
            };
        };
        responses: {
            /** @description Stored */
            201: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description It was stored already */
            204: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `digest_mismatch`, `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `file_too_large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `insufficient_storage`, `quota_exceeded` */
            507: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    listLinks: {
        parameters: {
            query?: {
                page?: number;
                page_size?: number;
                /** @description only links to this file or folder */
                path?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The links that have not expired */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "links": [
                     *         {
                     *           "id": "0d6f3a5e-8e0f-4f0a-9f6b-3c1c1d9f1a20",
                     *           "path": "notes/hello.txt",
                     *           "name": null,
                     *           "expires_at": "2027-01-15T09:30:00.000Z",
                     *           "downloads_left": 1,
                     *           "by": "admin",
                     *           "created_at": "2027-01-15T09:30:00.000Z"
                     *         }
                     *       ],
                     *       "pagination": {
                     *         "page": 1,
                     *         "page_size": 50,
                     *         "total_items": 1,
                     *         "total_pages": 1
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["LinkList"];
                };
            };
            /** @description `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    createLink: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "path": "notes/hello.txt",
                 *       "downloads": 3
                 *     }
                 */
                "application/json": components["schemas"]["NewLinkInput"];
            };
        };
        responses: {
            /** @description The link, its URL shown only now */
            201: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "id": "0d6f3a5e-8e0f-4f0a-9f6b-3c1c1d9f1a20",
                     *       "path": "notes/hello.txt",
                     *       "name": null,
                     *       "expires_at": "2027-01-15T09:30:00.000Z",
                     *       "downloads_left": 1,
                     *       "by": "admin",
                     *       "created_at": "2027-01-15T09:30:00.000Z",
                     *       "url": "/l/q3VnV0x2bGk1c2R0eW9rZA"
                     *     }
                     */
                    "application/json": components["schemas"]["CreatedLink"];
                };
            };
            /** @description `invalid_path`, `validation_failed`, `malformed_body` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `file_not_found`, `directory_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_links` */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `body_too_large` */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unsupported_media_type` */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    deleteLink: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @example 0d6f3a5e-8e0f-4f0a-9f6b-3c1c1d9f1a20 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted */
            204: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `link_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    openLink: {
        parameters: {
            query?: {
                download?: string;
            };
            header?: never;
            path: {
                /**
                 * @description of the link
                 * @example q3VnV0x2bGk1c2R0eW9rZA
                 */
                token: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file, or the page */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "*/*": Blob;
                };
            };
            /** @description The requested ranges */
            206: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "*/*": Blob;
                };
            };
            /** @description `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `link_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `range_not_satisfiable` */
            416: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    openLinkBelow: {
        parameters: {
            query?: {
                download?: string;
            };
            header?: never;
            path: {
                /**
                 * @description of the link
                 * @example q3VnV0x2bGk1c2R0eW9rZA
                 */
                token: string;
                /**
                 * @description path below the folder
                 * @example hello.txt
                 */
                path: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file, or the page */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "*/*": Blob;
                };
            };
            /** @description The requested ranges */
            206: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "*/*": Blob;
                };
            };
            /** @description `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `link_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `range_not_satisfiable` */
            416: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getContent: {
        parameters: {
            query?: {
                /** @description at least 8 leading hex digits of the SHA-256: this content may be cached for ever */
                v?: string | string[];
                /** @description with any value or none: the browser saves the file */
                download?: string | string[];
            };
            header?: {
                /** @description The ETag of the cached response. For example `"a1725bba7370e40aa78d688cc99089fcdf3d7a9d85e11e430ab83a8dceb755dc"` */
                "if-none-match"?: string;
                /** @description Parts of the file, in bytes. For example `bytes=0-4` */
                range?: string;
                /** @description The ETag of the cached parts: another one gets the whole file. For example `"a1725bba7370e40aa78d688cc99089fcdf3d7a9d85e11e430ab83a8dceb755dc"` */
                "if-range"?: string;
            };
            path: {
                /**
                 * @description the path of a file
                 * @example notes/hello.txt
                 */
                path: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The whole file, with its content type */
            200: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "*/*": Blob;
                };
            };
            /** @description The requested ranges; several as multipart/byteranges */
            206: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "*/*": Blob;
                };
            };
            /** @description A directory with an index: to its own name, with a slash */
            302: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description The file is unchanged by the condition */
            304: {
                headers: {
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description `invalid_path`, `validation_failed` */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `file_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `precondition_failed` */
            412: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `range_not_satisfiable` */
            416: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Any other error, such as `internal_error` */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
}
