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
    "/api/domains": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the domains of the account
         * @description From a list kept here and refreshed every few minutes, so a search costs no call to the registrar. Callers limited to some domains see only those. `list_type` and `sort_by` are case-insensitive. While a large account is read for the first time: 503 with Retry-After for callers who may not see all.
         */
        get: operations["listDomains"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/domains/{domain}/info": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Describe a domain
         * @description As the registrar describes it; null where it says nothing.
         */
        get: operations["getDomain"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/domains/{domain}/dns/nameservers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the nameservers of a domain
         * @description As the registrar has them. They are changed at the registrar.
         */
        get: operations["listNameservers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/domains/{domain}/dns/hosts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the records of a domain
         * @description Cached for some seconds; every write through this service refreshes the cache.
         */
        get: operations["getZone"];
        /**
         * Replace all records of a domain
         * @description Deletes the records that are not in the list: preview it with `dry_run=true`. The list of a GET can be sent back as it is. Answers once the zone was read back and compared.
         */
        put: operations["replaceZone"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Remove, change and add records at once
         * @description One write with all of it, or nothing. The records that are not named stay. Faults have pointers such as `/update/2/ttl`.
         */
        patch: operations["patchZone"];
        trace?: never;
    };
    "/api/domains/{domain}/dns/hosts/{record}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read one record
         * @description The `ETag` is that of the whole zone: send it as `If-Match` to change what you have read.
         */
        get: operations["getRecord"];
        put?: never;
        /**
         * Add one record; the others stay
         * @description One with the same name, type and address is refused: 409 `record_exists`.
         */
        post: operations["addRecord"];
        /**
         * Remove one record
         * @description All other records stay as they are. Preview it with `dry_run=true`.
         */
        delete: operations["removeRecord"];
        options?: never;
        head?: never;
        /**
         * Change one record
         * @description A JSON merge patch (RFC 7396), as `application/json` or `application/merge-patch+json`. `null` resets `ttl` and `mx_pref` to their defaults. The id changes with name, address and mx_pref: Location has the new one.
         */
        patch: operations["patchRecord"];
        trace?: never;
    };
    "/api/domains/{domain}/dns/rrsets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the RRsets of a domain
         * @description Records of one name and type together. Cached like the zone.
         */
        get: operations["listRrsets"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/domains/{domain}/dns/rrsets/{name}/{type}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read one RRset
         * @description All records of one name and type. PUT takes what this returns.
         */
        get: operations["getRrset"];
        /**
         * Set all records of one name and type
         * @description Idempotent: where the RRset is so already, nothing is written. What GET returns can be sent back.
         */
        put: operations["setRrset"];
        post?: never;
        /**
         * Remove all records of one name and type
         * @description Idempotent: 204 also where there is none. `dry_run=true` previews it.
         */
        delete: operations["removeRrset"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/records": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Search the records of all domains
         * @description In the zones as they were last read or written here, by name: no call goes to the registrar. `zones_searched` counts them; a domain whose zone was never read is not among them.
         */
        get: operations["searchRecords"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/domains/{domain}/dns/zonefile": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Export the records of a domain as a zone file
         * @description RFC 1035. Records and settings that DNS does not have (URL, URL301, FRAME, MXE, ALIAS, email type) are comments, which an import reads.
         */
        get: operations["getZoneFile"];
        /**
         * Replace all records of a domain by those of a zone file
         * @description Deletes the records that are not in the file: preview it with `dry_run=true`. SOA and NS of the domain itself are skipped with a warning. Faults name their line: `/line/12`. At most 1 MiB.
         */
        put: operations["putZoneFile"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/domains/{domain}/dns/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List who changed what in a domain, newest first
         * @description Changes made through this service that reached the registrar. Costs no call to the registrar.
         */
        get: operations["listHistory"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/domains/{domain}/dns/history/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read one change with the whole zone before and after it
         * @description A restore writes one of these two zones.
         */
        get: operations["getHistoryEntry"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/domains/{domain}/dns/history/{id}/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Restore the zone as it was before a change
         * @description With `to=after`: as the change left it. A write like any other: `dry_run=true` previews it, and the history records it.
         */
        post: operations["restoreZone"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/domains/{domain}/dns/history/{id}/revert": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Undo one change and keep the later ones
         * @description 409 `revert_conflict` where a later change touched the same records.
         */
        post: operations["revertChange"];
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
         * List changes of all domains, newest first
         * @description Changes of the domains that the caller may see, whatever their status.
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
         * Read one change and its outcome
         * @description Poll this after a `202` until its state is final.
         */
        get: operations["getChange"];
        put?: never;
        post?: never;
        /**
         * Cancel a queued or proposed change
         * @description Only a change that is still queued, or that the caller has proposed; nothing of it is sent.
         */
        delete: operations["cancelChange"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/changes/held/release": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Carry out the queued changes of a restored backup
         * @description After a restore from a backup, changes that were queued in it wait for an admin, since they may have been carried out after the backup was made. An admin limited to domains decides about the changes of these domains.
         */
        post: operations["releaseHeldChanges"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/changes/held": {
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
         * Cancel the queued changes of a restored backup
         * @description After a restore from a backup, changes that were queued in it wait for an admin, since they may have been carried out after the backup was made. An admin limited to domains decides about the changes of these domains.
         */
        delete: operations["cancelHeldChanges"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/changes/{id}/approve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Approve a proposed change
         * @description For another person than its author, logged in. It is queued if it still adds and removes the records that were proposed. Else 409 `change_outdated` has what was `proposed` and the `changes` that it would make now, which the proposal then shows.
         */
        post: operations["approveChange"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/changes/{id}/reject": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reject a proposed change
         * @description By whom it could be approved. Nothing of it is sent.
         */
        post: operations["rejectChange"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
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
         * @description Events of the last 30 days about what the caller may see. Read on with `after` = `next`, at the end too: nothing is missed. Types: `zone.changed`, `zone.changed_outside`, `change.proposed`, `change.refused`, `change.unconfirmed`, `domain.added`, `domain.removed`, `domain.expiring`, `registrar.failing`, `registrar.recovered`.
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
    "/api/registrar": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The registrar: calls left, last failure
         * @description From the calls made so far; it makes none itself.
         */
        get: operations["getRegistrar"];
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
        NewZoneInput: {
            hosts: {
                /**
                 * @description @ for the domain itself
                 * @example www
                 */
                name: string;
                /** @example 192.0.2.10 */
                address: string;
                /** @description seconds; default: that of the live record, else 1800 */
                ttl?: number;
                /** @description used for MX only; default: that of the live record, else 10 */
                mx_pref?: number;
                /** @description ignored */
                id?: string;
                /** @example A */
                type: string;
            }[];
            /**
             * @description default: unchanged
             * @enum {string}
             */
            email_type?: "NONE" | "MX" | "MXE" | "FWD" | "OX" | "GMAIL";
        };
        /**
         * @example {
         *       "remove": [
         *         "b71c42652efd"
         *       ],
         *       "add": [
         *         {
         *           "name": "hello",
         *           "type": "A",
         *           "address": "192.0.2.11"
         *         }
         *       ]
         *     }
         */
        ZonePatchInput: {
            /** @description ids of records */
            remove?: string[];
            update?: {
                name?: string;
                /** @description as it is: a type cannot be changed */
                type?: string;
                address?: string;
                /** @description seconds; null: 1800 */
                ttl?: number | null;
                /** @description used for MX only; null: 10 */
                mx_pref?: number | null;
                id: string;
            }[];
            add?: {
                /**
                 * @description @ for the domain itself
                 * @example www
                 */
                name: string;
                /** @example 192.0.2.10 */
                address: string;
                /** @description seconds; default: that of the live record, else 1800 */
                ttl?: number;
                /** @description used for MX only; default: that of the live record, else 10 */
                mx_pref?: number;
                /** @description ignored */
                id?: string;
                /** @example A */
                type: string;
            }[];
            /**
             * @description default: unchanged
             * @enum {string}
             */
            email_type?: "NONE" | "MX" | "MXE" | "FWD" | "OX" | "GMAIL";
        };
        /**
         * @example {
         *       "name": "hello",
         *       "address": "192.0.2.10"
         *     }
         */
        NewRecordInput: {
            /**
             * @description @ for the domain itself
             * @example www
             */
            name: string;
            /** @example 192.0.2.10 */
            address: string;
            /** @description seconds; default: that of the live record, else 1800 */
            ttl?: number;
            /** @description used for MX only; default: that of the live record, else 10 */
            mx_pref?: number;
            /** @description ignored */
            id?: string;
            /**
             * @description default: unchanged
             * @enum {string}
             */
            email_type?: "NONE" | "MX" | "MXE" | "FWD" | "OX" | "GMAIL";
        };
        /**
         * @example {
         *       "address": "192.0.2.11"
         *     }
         */
        RecordPatchInput: {
            name?: string;
            /** @description as it is: a type cannot be changed */
            type?: string;
            address?: string;
            /** @description seconds; null: 1800 */
            ttl?: number | null;
            /** @description used for MX only; null: 10 */
            mx_pref?: number | null;
            /** @description ignored */
            id?: string;
            /**
             * @description default: unchanged
             * @enum {string}
             */
            email_type?: "NONE" | "MX" | "MXE" | "FWD" | "OX" | "GMAIL";
        };
        /**
         * @example {
         *       "ttl": 300,
         *       "values": [
         *         "192.0.2.10",
         *         "192.0.2.11"
         *       ]
         *     }
         */
        NewRrsetInput: {
            /** @description seconds; default: as the values that stay, else 1800 */
            ttl?: number;
            /**
             * @description addresses; of MX with the preference: 10 mx1.example.net
             * @example [
             *       "192.0.2.10"
             *     ]
             */
            values: string[];
            /**
             * @description default: unchanged
             * @enum {string}
             */
            email_type?: "NONE" | "MX" | "MXE" | "FWD" | "OX" | "GMAIL";
            /** @description as in the path */
            name?: string;
            /** @description as in the path */
            type?: string;
            /** @description true: values that are there keep their TTLs */
            mixed_ttl?: boolean;
        };
        /**
         * @example {
         *       "reason": "the address is that of the old server"
         *     }
         */
        RejectionInput: {
            reason?: string;
        } | null;
        NewWebhookInput: {
            /**
             * @description https, without a password in it
             * @example https://hooks.example.com/changes
             */
            url: string;
            name?: string;
            /** @description default: all */
            types?: ("zone.changed" | "zone.changed_outside" | "change.proposed" | "change.refused" | "change.unconfirmed" | "domain.added" | "domain.removed" | "domain.expiring" | "registrar.failing" | "registrar.recovered")[];
            /** @description only events about these domains; default: all */
            domains?: string[];
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
            types?: ("zone.changed" | "zone.changed_outside" | "change.proposed" | "change.refused" | "change.unconfirmed" | "domain.added" | "domain.removed" | "domain.expiring" | "registrar.failing" | "registrar.recovered")[];
            /** @description only events about these domains; default: all */
            domains?: string[];
            paused?: boolean;
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
            code: "bad_request" | "body_too_large" | "change_closed" | "change_not_found" | "change_not_queued" | "change_outdated" | "delivery_not_found" | "dns_not_managed" | "domain_not_editable" | "domain_not_found" | "email_type_conflict" | "events_expired" | "forbidden" | "headers_too_large" | "idempotency_key_reused" | "insufficient_storage" | "internal_error" | "invalid_credentials" | "last_admin" | "login_not_begun" | "malformed_body" | "malformed_request" | "malformed_url" | "method_not_allowed" | "not_allowed" | "not_found" | "outcome_unknown" | "own_change" | "password_login_off" | "precondition_failed" | "record_conflict" | "record_exists" | "record_not_found" | "registrar_auth" | "registrar_bad_answer" | "registrar_busy" | "registrar_error" | "registrar_rejected" | "registrar_timeout" | "registrar_unavailable" | "registrar_unreachable" | "request_timeout" | "revert_conflict" | "rights_elsewhere" | "token_exists" | "token_expired" | "token_not_found" | "too_many_changes" | "too_many_listeners" | "too_many_records" | "too_many_requests" | "too_many_tokens" | "too_many_webhooks" | "trust_exists" | "trust_not_found" | "unauthorized" | "unavailable" | "unsupported_media_type" | "unsupported_records" | "url_too_long" | "user_exists" | "user_not_found" | "validation_failed" | "weak_password" | "webhook_not_found" | "webhook_url_refused" | "write_not_confirmed";
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
        DomainEntry: {
            /** @example alder-and-finch.com */
            name: string;
            /** @example 2000001 */
            id: string;
            /**
             * @description a day; null: unknown
             * @example 2021-12-07
             */
            created_on: string | null;
            /**
             * @description the beginning of `created_on` in UTC: the registrar tells no time of day
             * @example 2021-12-07T00:00:00.000Z
             */
            created_at: string | null;
            /**
             * @description a day; null: unknown
             * @example 2027-06-15
             */
            expires_on: string | null;
            /** @example false */
            is_premium: boolean | null;
            /** @example false */
            is_expired: boolean | null;
            /** @example false */
            is_locked: boolean | null;
            /** @example true */
            auto_renew: boolean | null;
            /**
             * @description as the registrar names it
             * @example ENABLED
             */
            whois_guard: string | null;
            /**
             * @description whether its records are at the registrar; null: unknown
             * @example true
             */
            uses_registrar_dns: boolean | null;
        };
        DomainInfo: {
            /** @example alder-and-finch.com */
            name: string;
            /** @example 2000001 */
            id: string;
            /**
             * @description a day; null: unknown
             * @example 2021-12-07
             */
            created_on: string | null;
            /**
             * @description the beginning of `created_on` in UTC: the registrar tells no time of day
             * @example 2021-12-07T00:00:00.000Z
             */
            created_at: string | null;
            /**
             * @description a day; null: unknown
             * @example 2027-06-15
             */
            expires_on: string | null;
            /** @example false */
            is_premium: boolean | null;
            /** @example Ok */
            status: string | null;
            /** @example sandbox */
            owner: string | null;
            /** @example true */
            is_owner: boolean | null;
            years: number | null;
            whois_guard: {
                /** @example ENABLED */
                status: string | null;
                /**
                 * @description a day; null: unknown
                 * @example 2027-06-15
                 */
                expires_on: string | null;
            };
            dns: {
                /** @example FREE */
                provider: string | null;
                /** @example true */
                uses_registrar_dns: boolean | null;
                host_count: number | null;
                /** @example NONE */
                email_type: string | null;
                nameservers: string[];
            };
            /**
             * @example [
             *       "all"
             *     ]
             */
            rights: string[];
        };
        Nameservers: {
            /** @example alder-and-finch.com */
            domain: string;
            /** @example true */
            uses_registrar_dns: boolean | null;
            nameservers: {
                /** @example dns1.registrar-servers.com */
                name: string;
            }[];
        };
        Zone: {
            /** @example alder-and-finch.com */
            domain: string;
            /** @description false: it uses other nameservers, and cannot be written here */
            uses_registrar_dns: boolean;
            /**
             * @description how the domain receives mail: NONE, MX, MXE, FWD, OX, GMAIL; null: unknown
             * @example NONE
             */
            email_type: string | null;
            /** @description by name (@ first), type and address */
            hosts: components["schemas"]["HostRecord"][];
        };
        HostRecord: {
            /**
             * @description 12 hex digits, from name, type, address and mx_pref
             * @example b71c42652efd
             */
            id: string;
            /**
             * @description @ for the domain itself
             * @example hello
             */
            name: string;
            /**
             * @description one of A, AAAA, ALIAS, CAA, CNAME, MX, MXE, NS, TXT, URL, URL301, FRAME; others can be read, not written
             * @example A
             */
            type: string;
            /** @example 192.0.2.10 */
            address: string;
            /**
             * @description seconds
             * @example 1800
             */
            ttl: number;
            /** @description MX records only */
            mx_pref?: number;
        };
        WrittenZone: {
            /** @example alder-and-finch.com */
            domain: string;
            /** @description false: it uses other nameservers, and cannot be written here */
            uses_registrar_dns: boolean;
            /**
             * @description how the domain receives mail: NONE, MX, MXE, FWD, OX, GMAIL; null: unknown
             * @example NONE
             */
            email_type: string | null;
            /** @description by name (@ first), type and address */
            hosts: components["schemas"]["HostRecord"][];
            /**
             * @description nothing was written
             * @constant
             */
            dry_run?: true;
            /**
             * @description not read back yet: GET /api/changes tells the outcome
             * @constant
             */
            verified?: false;
            changes: components["schemas"]["Changes"];
            /**
             * @description what the write lost, and what to know of it
             * @example []
             */
            warnings: string[];
        };
        Changes: {
            added: components["schemas"]["HostRecord"][];
            /** @example [] */
            removed: components["schemas"]["HostRecord"][];
            /**
             * @description records that stayed as they were
             * @example 0
             */
            kept: number;
        };
        /**
         * @example {
         *       "id": 1,
         *       "at": "2027-01-15T09:30:00.000Z",
         *       "created_at": "2027-01-15T09:30:00.000Z",
         *       "by": "admin",
         *       "request_id": "5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44",
         *       "status": "confirmed",
         *       "changes": {
         *         "added": [
         *           {
         *             "id": "b71c42652efd",
         *             "name": "hello",
         *             "type": "A",
         *             "address": "192.0.2.10",
         *             "ttl": 1800
         *           }
         *         ],
         *         "removed": [],
         *         "kept": 0
         *       },
         *       "domain": "alder-and-finch.com",
         *       "sent_at": "2027-01-15T09:30:00.000Z",
         *       "ended_at": "2027-01-15T09:30:01.000Z"
         *     }
         */
        Change: {
            id: number;
            /** Format: date-time */
            at: string;
            /**
             * Format: date-time
             * @description when the change was requested
             */
            created_at: string;
            /**
             * @description a username, or domain-service for a repaired late write; null: changed outside
             * @example admin
             */
            by: string | null;
            /** @description name of the API token that was used */
            token?: string;
            /**
             * @description the x-request-id of the write
             * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
             */
            request_id: string;
            /** @description who approved it */
            approved_by?: string;
            /**
             * Format: date-time
             * @description made outside: when the zone was last seen without it
             */
            seen_since?: string;
            /**
             * @description confirmed: done. unconfirmed: sent, but the zone is unknown or differs. refused: not done, see problem. sending, queued: not done yet. cancelled: never sent. proposed: waits for an approval. rejected: not approved
             * @example confirmed
             * @enum {string}
             */
            status: "proposed" | "rejected" | "queued" | "sending" | "confirmed" | "refused" | "unconfirmed" | "cancelled";
            /** @description outside: not made through this service. late_write: the service restored the zone. superseded: a later change made it pointless. expired: nobody approved it in 14 days. Of a rejected change: the words of the rejecter */
            reason?: string;
            /**
             * @description queued in a backup that was restored: waits for an admin
             * @constant
             */
            held?: true;
            /**
             * @description the zone could not be read back yet
             * @constant
             */
            verified?: false;
            warnings?: string[];
            /** @description why the change was refused or is unconfirmed */
            problem?: components["schemas"]["Problem"];
            domain: string;
            sent_at: string | null;
            ended_at: string | null;
            /** @description null until the change was evaluated */
            changes: components["schemas"]["ChangeSummary"] | null;
            /** @description of a proposed change: the ETag of the zone that it was evaluated on */
            etag?: string;
        };
        ChangeSummary: {
            added: components["schemas"]["HostRecord"][];
            /** @example [] */
            removed: components["schemas"]["HostRecord"][];
            /**
             * @description records that stayed as they were
             * @example 0
             */
            kept: number;
            /** @description in lists: records of large changes that are not shown; read the change itself */
            omitted?: {
                added: number;
                removed: number;
            };
        };
        AddedRecord: {
            /**
             * @description 12 hex digits, from name, type, address and mx_pref
             * @example b71c42652efd
             */
            id: string;
            /**
             * @description @ for the domain itself
             * @example hello
             */
            name: string;
            /**
             * @description one of A, AAAA, ALIAS, CAA, CNAME, MX, MXE, NS, TXT, URL, URL301, FRAME; others can be read, not written
             * @example A
             */
            type: string;
            /** @example 192.0.2.10 */
            address: string;
            /**
             * @description seconds
             * @example 1800
             */
            ttl: number;
            /** @description MX records only */
            mx_pref?: number;
            /**
             * @description nothing was written
             * @constant
             */
            dry_run?: true;
            /**
             * @description not read back yet: GET /api/changes tells the outcome
             * @constant
             */
            verified?: false;
            /**
             * @description what the write lost, and what to know of it
             * @example []
             */
            warnings?: string[];
        };
        Rrset: {
            /**
             * @description @ for the domain itself
             * @example hello
             */
            name: string;
            /** @example A */
            type: string;
            /**
             * @description seconds; the lowest of the records
             * @example 1800
             */
            ttl: number;
            /**
             * @description addresses; of MX with the preference: 10 mx1.example.net
             * @example [
             *       "192.0.2.10"
             *     ]
             */
            values: string[];
            /**
             * @description the TTLs of the records differ
             * @constant
             */
            mixed_ttl?: true;
        };
        WrittenRrset: {
            /**
             * @description @ for the domain itself
             * @example hello
             */
            name: string;
            /** @example A */
            type: string;
            /**
             * @description seconds; the lowest of the records
             * @example 1800
             */
            ttl: number;
            /**
             * @description addresses; of MX with the preference: 10 mx1.example.net
             * @example [
             *       "192.0.2.10"
             *     ]
             */
            values: string[];
            /**
             * @description the TTLs of the records differ
             * @constant
             */
            mixed_ttl?: true;
            /**
             * @description nothing was written
             * @constant
             */
            dry_run?: true;
            /**
             * @description not read back yet: GET /api/changes tells the outcome
             * @constant
             */
            verified?: false;
            /**
             * @description what the write lost, and what to know of it
             * @example []
             */
            warnings?: string[];
        };
        FoundRecord: {
            /**
             * @description 12 hex digits, from name, type, address and mx_pref
             * @example b71c42652efd
             */
            id: string;
            /**
             * @description @ for the domain itself
             * @example hello
             */
            name: string;
            /**
             * @description one of A, AAAA, ALIAS, CAA, CNAME, MX, MXE, NS, TXT, URL, URL301, FRAME; others can be read, not written
             * @example A
             */
            type: string;
            /** @example 192.0.2.10 */
            address: string;
            /**
             * @description seconds
             * @example 1800
             */
            ttl: number;
            /** @description MX records only */
            mx_pref?: number;
            /** @example alder-and-finch.com */
            domain: string;
            /**
             * Format: date-time
             * @description when its zone was last read at the registrar
             */
            read_at: string;
        };
        HistoryEntry: {
            id: number;
            /** Format: date-time */
            at: string;
            /**
             * Format: date-time
             * @description when the change was requested
             */
            created_at: string;
            /**
             * @description a username, or domain-service for a repaired late write; null: changed outside
             * @example admin
             */
            by: string | null;
            /** @description name of the API token that was used */
            token?: string;
            /**
             * @description the x-request-id of the write
             * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
             */
            request_id: string;
            /** @description who approved it */
            approved_by?: string;
            /**
             * Format: date-time
             * @description made outside: when the zone was last seen without it
             */
            seen_since?: string;
            /**
             * @description confirmed: done. unconfirmed: sent, but the zone is unknown or differs. refused: not done, see problem. sending, queued: not done yet. cancelled: never sent. proposed: waits for an approval. rejected: not approved
             * @example confirmed
             * @enum {string}
             */
            status: "proposed" | "rejected" | "queued" | "sending" | "confirmed" | "refused" | "unconfirmed" | "cancelled";
            /** @description outside: not made through this service. late_write: the service restored the zone. superseded: a later change made it pointless. expired: nobody approved it in 14 days. Of a rejected change: the words of the rejecter */
            reason?: string;
            /**
             * @description queued in a backup that was restored: waits for an admin
             * @constant
             */
            held?: true;
            /**
             * @description the zone could not be read back yet
             * @constant
             */
            verified?: false;
            warnings?: string[];
            /** @description why the change was refused or is unconfirmed */
            problem?: components["schemas"]["Problem"];
            domain: string;
            sent_at: string | null;
            ended_at: string | null;
            changes: components["schemas"]["ChangeSummary"];
            /** @description of a proposed change: the ETag of the zone that it was evaluated on */
            etag?: string;
            /** @example NONE */
            email_type_before: string | null;
            /** @example NONE */
            email_type_after: string | null;
        };
        PastZone: {
            /** @example NONE */
            email_type: string | null;
            hosts: components["schemas"]["HostRecord"][];
        };
        /**
         * @example {
         *       "count": 3
         *     }
         */
        HeldChanges: {
            /** @description how many changes waited */
            count: number;
        };
        /**
         * @example {
         *       "events": [
         *         {
         *           "id": "01KEZ5H3C0000ABCDEFGHJKMNP",
         *           "type": "zone.changed",
         *           "at": "2027-01-15T09:30:00.000Z",
         *           "by": "admin",
         *           "request_id": "5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44",
         *           "data": {
         *             "id": 1,
         *             "at": "2027-01-15T09:30:00.000Z",
         *             "created_at": "2027-01-15T09:30:00.000Z",
         *             "by": "admin",
         *             "request_id": "5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44",
         *             "status": "confirmed",
         *             "changes": {
         *               "added": [
         *                 {
         *                   "id": "b71c42652efd",
         *                   "name": "hello",
         *                   "type": "A",
         *                   "address": "192.0.2.10",
         *                   "ttl": 1800
         *                 }
         *               ],
         *               "removed": [],
         *               "kept": 0
         *             },
         *             "domain": "alder-and-finch.com",
         *             "sent_at": "2027-01-15T09:30:00.000Z",
         *             "ended_at": "2027-01-15T09:30:01.000Z"
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
            domains: string[] | null;
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
            domains: string[] | null;
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
        RegistrarState: {
            /**
             * @description host of REGISTRAR_URL, or `sandbox`
             * @example sandbox
             */
            registrar: string;
            /**
             * Format: ipv4
             * @description REGISTRAR_CLIENT_IP: the address to whitelist at the registrar
             * @example 192.0.2.7
             */
            client_ip: string;
            /**
             * @description open: calls pause for seconds after several failures in a row
             * @enum {string}
             */
            breaker: "closed" | "open" | "half_open";
            budget: {
                /** @enum {string} */
                window: "minute" | "hour" | "day";
                /** @example 20 */
                limit: number;
                /** @example 17 */
                left: number;
                /** @description when the oldest counted call leaves the window */
                next_free_at: string | null;
            }[];
            /** @description made in each of the last 24 hours, oldest first */
            calls: {
                /** Format: date-time */
                from: string;
                calls: number;
                /** @description of these, for readers and for reading ahead */
                reads: number;
            }[];
            /** @description calls and write rounds that wait for slots */
            calls_waiting: number;
            /** @description the account's list of domains, as kept here */
            domain_list: {
                /** @description null: not read yet */
                domains: number | null;
                read_at: string | null;
                is_reading: boolean;
                /** @description of the reading under way */
                pages_read: number;
                pages: number | null;
            };
            /** @description reading for changes that were made outside */
            sweep: {
                /**
                 * @description DRIFT_INTERVAL_S; 0: off
                 * @example 21600
                 */
                interval_s: number;
                /** @description whether this replica sweeps */
                is_active: boolean;
                /** @description on the registrar's DNS */
                domains: number;
                /** @description of these, seen within the interval */
                seen: number;
            };
            last_success_at: string | null;
            /** @example null */
            last_failure: {
                /** Format: date-time */
                at: string;
                code: string;
            } | null;
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
    listDomains: {
        parameters: {
            query?: {
                /** @description EXPIRING: within 30 days */
                list_type?: "ALL" | "EXPIRING" | "EXPIRED";
                /** @description a part of the name, in Unicode or A-labels */
                search_term?: string;
                /** @description the same as `search_term`: one of the two */
                search?: string;
                page?: number;
                page_size?: number;
                /** @description default: NAME */
                sort_by?: "NAME" | "NAME_DESC" | "EXPIREDATE" | "EXPIREDATE_DESC" | "CREATEDATE" | "CREATEDATE_DESC";
                /** @description a field, `-` before it for descending order; or `sort_by` */
                sort?: "name" | "-name" | "expires_on" | "-expires_on" | "created_on" | "-created_on" | "created_at" | "-created_at";
            };
            header?: {
                /** @description `no-cache`: not from the cache (at the cost of a call to the registrar). For example `no-cache` */
                "cache-control"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page; empty past the end */
            200: {
                headers: {
                    /**
                     * @description Seconds since the registrar told it
                     * @example 12
                     */
                    age?: string;
                    /**
                     * @description There when the registrar fails and this is older than it should be
                     * @example 110 - "Response is Stale"
                     */
                    warning?: string;
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
                     *       "domains": [
                     *         {
                     *           "name": "alder-and-finch.com",
                     *           "id": "2000001",
                     *           "created_on": "2021-12-07",
                     *           "created_at": "2021-12-07T00:00:00.000Z",
                     *           "expires_on": "2027-06-15",
                     *           "is_premium": false,
                     *           "is_expired": false,
                     *           "is_locked": false,
                     *           "auto_renew": true,
                     *           "whois_guard": "ENABLED",
                     *           "uses_registrar_dns": true
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
                        domains: components["schemas"]["DomainEntry"][];
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
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_rejected` */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_auth`, `registrar_error`, `registrar_bad_answer`, `registrar_unreachable` */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_busy`, `registrar_unavailable` */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_timeout` */
            504: {
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
    getDomain: {
        parameters: {
            query?: never;
            header?: {
                /** @description `no-cache`: not from the cache (at the cost of a call to the registrar). For example `no-cache` */
                "cache-control"?: string;
            };
            path: {
                /**
                 * @description the registered name itself, in any case, Unicode or xn--; a subdomain is the name of a record
                 * @example alder-and-finch.com
                 */
                domain: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The domain */
            200: {
                headers: {
                    /**
                     * @description Seconds since the registrar told it
                     * @example 12
                     */
                    age?: string;
                    /**
                     * @description There when the registrar fails and this is older than it should be
                     * @example 110 - "Response is Stale"
                     */
                    warning?: string;
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
                     *       "name": "alder-and-finch.com",
                     *       "id": "2000001",
                     *       "created_on": "2021-12-07",
                     *       "created_at": "2021-12-07T00:00:00.000Z",
                     *       "expires_on": "2027-06-15",
                     *       "is_premium": false,
                     *       "status": "Ok",
                     *       "owner": "sandbox",
                     *       "is_owner": true,
                     *       "years": 1,
                     *       "whois_guard": {
                     *         "status": "ENABLED",
                     *         "expires_on": "2027-06-15"
                     *       },
                     *       "dns": {
                     *         "provider": "FREE",
                     *         "uses_registrar_dns": true,
                     *         "host_count": 1,
                     *         "email_type": "NONE",
                     *         "nameservers": [
                     *           "dns1.registrar-servers.com"
                     *         ]
                     *       },
                     *       "rights": [
                     *         "all"
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["DomainInfo"];
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
            /** @description `domain_not_editable`, `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `domain_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `dns_not_managed` */
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
            /** @description `registrar_rejected` */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_auth`, `registrar_error`, `registrar_bad_answer`, `registrar_unreachable` */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_busy`, `registrar_unavailable` */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_timeout` */
            504: {
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
    listNameservers: {
        parameters: {
            query?: never;
            header?: {
                /** @description `no-cache`: not from the cache (at the cost of a call to the registrar). For example `no-cache` */
                "cache-control"?: string;
            };
            path: {
                /**
                 * @description the registered name itself, in any case, Unicode or xn--; a subdomain is the name of a record
                 * @example alder-and-finch.com
                 */
                domain: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its nameservers */
            200: {
                headers: {
                    /**
                     * @description Seconds since the registrar told it
                     * @example 12
                     */
                    age?: string;
                    /**
                     * @description There when the registrar fails and this is older than it should be
                     * @example 110 - "Response is Stale"
                     */
                    warning?: string;
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
                     *       "domain": "alder-and-finch.com",
                     *       "uses_registrar_dns": true,
                     *       "nameservers": [
                     *         {
                     *           "name": "dns1.registrar-servers.com"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Nameservers"];
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
            /** @description `domain_not_editable`, `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `domain_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `dns_not_managed` */
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
            /** @description `registrar_rejected` */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_auth`, `registrar_error`, `registrar_bad_answer`, `registrar_unreachable` */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_busy`, `registrar_unavailable` */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_timeout` */
            504: {
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
    getZone: {
        parameters: {
            query?: never;
            header?: {
                /** @description The ETag of the zone that you have: 304 if it is still that. For example `"2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"` */
                "if-none-match"?: string;
                /** @description `no-cache`: not from the cache (at the cost of a call to the registrar). For example `no-cache` */
                "cache-control"?: string;
            };
            path: {
                /**
                 * @description the registered name itself, in any case, Unicode or xn--; a subdomain is the name of a record
                 * @example alder-and-finch.com
                 */
                domain: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The zone */
            200: {
                headers: {
                    /**
                     * @description Of the whole zone: send it as If-Match with a write
                     * @example "2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"
                     */
                    etag?: string;
                    /**
                     * @description Seconds since the registrar told it
                     * @example 12
                     */
                    age?: string;
                    /**
                     * @description There when the registrar fails and this is older than it should be
                     * @example 110 - "Response is Stale"
                     */
                    warning?: string;
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
                     *       "domain": "alder-and-finch.com",
                     *       "uses_registrar_dns": true,
                     *       "email_type": "NONE",
                     *       "hosts": [
                     *         {
                     *           "id": "b71c42652efd",
                     *           "name": "hello",
                     *           "type": "A",
                     *           "address": "192.0.2.10",
                     *           "ttl": 1800
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Zone"];
                };
            };
            /** @description The zone is still as If-None-Match says */
            304: {
                headers: {
                    /**
                     * @description Of the whole zone: send it as If-Match with a write
                     * @example "2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"
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
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `domain_not_editable`, `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `domain_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `dns_not_managed` */
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
            /** @description `registrar_rejected` */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_auth`, `registrar_error`, `registrar_bad_answer`, `registrar_unreachable` */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_busy`, `registrar_unavailable` */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_timeout` */
            504: {
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
    replaceZone: {
        parameters: {
            query?: {
                /** @description answers what would change, and writes nothing */
                dry_run?: boolean;
                /** @description asks another person for approval, and sends nothing before */
                propose?: boolean;
                /** @description proceeds where records of a type that cannot be sent, such as SRV, would be lost */
                force?: boolean;
            };
            header?: {
                /** @description The ETag of the zone as you read it: write only if it is still that. For example `"2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"` */
                "if-match"?: string;
                /** @description `respond-async`: answer 202 at once and carry the change out when calls are free. For example `respond-async` */
                prefer?: string;
                /** @description Repeating the request with this key within 24 hours writes nothing twice. For example `7b1f4a52-9d0e-4f0b-8a43-2f6c9d1e5a77` */
                "idempotency-key"?: string;
            };
            path: {
                /**
                 * @description the registered name itself, in any case, Unicode or xn--; a subdomain is the name of a record
                 * @example alder-and-finch.com
                 */
                domain: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "hosts": [
                 *         {
                 *           "name": "www",
                 *           "address": "192.0.2.10",
                 *           "type": "A"
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["NewZoneInput"];
            };
        };
        responses: {
            /** @description The zone as it now is, and what changed */
            200: {
                headers: {
                    /**
                     * @description Of the whole zone: send it as If-Match with a write
                     * @example "2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"
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
                     *       "domain": "alder-and-finch.com",
                     *       "uses_registrar_dns": true,
                     *       "email_type": "NONE",
                     *       "hosts": [
                     *         {
                     *           "id": "b71c42652efd",
                     *           "name": "hello",
                     *           "type": "A",
                     *           "address": "192.0.2.10",
                     *           "ttl": 1800
                     *         }
                     *       ],
                     *       "changes": {
                     *         "added": [
                     *           {
                     *             "id": "b71c42652efd",
                     *             "name": "hello",
                     *             "type": "A",
                     *             "address": "192.0.2.10",
                     *             "ttl": 1800
                     *           }
                     *         ],
                     *         "removed": [],
                     *         "kept": 0
                     *       },
                     *       "warnings": []
                     *     }
                     */
                    "application/json": components["schemas"]["WrittenZone"];
                };
            };
            /** @description With `Prefer: respond-async`: the change is queued, its outcome will be at Location. With `propose=true`, or where the caller may only propose: it waits for an approval */
            202: {
                headers: {
                    /**
                     * @description Where the outcome can be read
                     * @example /api/changes/7
                     */
                    location?: string;
                    /**
                     * @description respond-async
                     * @example respond-async
                     */
                    "preference-applied"?: string;
                    /**
                     * @description Seconds after which to look for the outcome
                     * @example 5
                     */
                    "retry-after"?: string;
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
                     *       "created_at": "2027-01-15T09:30:00.000Z",
                     *       "by": "admin",
                     *       "request_id": "5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44",
                     *       "status": "confirmed",
                     *       "changes": {
                     *         "added": [
                     *           {
                     *             "id": "b71c42652efd",
                     *             "name": "hello",
                     *             "type": "A",
                     *             "address": "192.0.2.10",
                     *             "ttl": 1800
                     *           }
                     *         ],
                     *         "removed": [],
                     *         "kept": 0
                     *       },
                     *       "domain": "alder-and-finch.com",
                     *       "sent_at": "2027-01-15T09:30:00.000Z",
                     *       "ended_at": "2027-01-15T09:30:01.000Z"
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
            /** @description `domain_not_editable`, `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `domain_not_found`, `record_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `dns_not_managed`, `email_type_conflict`, `unsupported_records`, `record_exists`, `record_conflict` */
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
            /** @description `registrar_rejected`, `too_many_records`, `idempotency_key_reused` */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_changes` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_auth`, `registrar_error`, `registrar_bad_answer`, `registrar_unreachable`, `write_not_confirmed` */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_busy`, `registrar_unavailable`, `unavailable` */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_timeout` */
            504: {
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
    patchZone: {
        parameters: {
            query?: {
                /** @description answers what would change, and writes nothing */
                dry_run?: boolean;
                /** @description asks another person for approval, and sends nothing before */
                propose?: boolean;
                /** @description proceeds where records of a type that cannot be sent, such as SRV, would be lost */
                force?: boolean;
            };
            header?: {
                /** @description The ETag of the zone as you read it: write only if it is still that. For example `"2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"` */
                "if-match"?: string;
                /** @description `respond-async`: answer 202 at once and carry the change out when calls are free. For example `respond-async` */
                prefer?: string;
                /** @description Repeating the request with this key within 24 hours writes nothing twice. For example `7b1f4a52-9d0e-4f0b-8a43-2f6c9d1e5a77` */
                "idempotency-key"?: string;
            };
            path: {
                /**
                 * @description the registered name itself, in any case, Unicode or xn--; a subdomain is the name of a record
                 * @example alder-and-finch.com
                 */
                domain: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "remove": [
                 *         "b71c42652efd"
                 *       ],
                 *       "add": [
                 *         {
                 *           "name": "hello",
                 *           "type": "A",
                 *           "address": "192.0.2.11"
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["ZonePatchInput"];
            };
        };
        responses: {
            /** @description The zone as it now is, and what changed */
            200: {
                headers: {
                    /**
                     * @description Of the whole zone: send it as If-Match with a write
                     * @example "2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"
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
                     *       "domain": "alder-and-finch.com",
                     *       "uses_registrar_dns": true,
                     *       "email_type": "NONE",
                     *       "hosts": [
                     *         {
                     *           "id": "b71c42652efd",
                     *           "name": "hello",
                     *           "type": "A",
                     *           "address": "192.0.2.10",
                     *           "ttl": 1800
                     *         }
                     *       ],
                     *       "changes": {
                     *         "added": [
                     *           {
                     *             "id": "b71c42652efd",
                     *             "name": "hello",
                     *             "type": "A",
                     *             "address": "192.0.2.10",
                     *             "ttl": 1800
                     *           }
                     *         ],
                     *         "removed": [],
                     *         "kept": 0
                     *       },
                     *       "warnings": []
                     *     }
                     */
                    "application/json": components["schemas"]["WrittenZone"];
                };
            };
            /** @description With `Prefer: respond-async`: the change is queued, its outcome will be at Location. With `propose=true`, or where the caller may only propose: it waits for an approval */
            202: {
                headers: {
                    /**
                     * @description Where the outcome can be read
                     * @example /api/changes/7
                     */
                    location?: string;
                    /**
                     * @description respond-async
                     * @example respond-async
                     */
                    "preference-applied"?: string;
                    /**
                     * @description Seconds after which to look for the outcome
                     * @example 5
                     */
                    "retry-after"?: string;
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
                     *       "created_at": "2027-01-15T09:30:00.000Z",
                     *       "by": "admin",
                     *       "request_id": "5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44",
                     *       "status": "confirmed",
                     *       "changes": {
                     *         "added": [
                     *           {
                     *             "id": "b71c42652efd",
                     *             "name": "hello",
                     *             "type": "A",
                     *             "address": "192.0.2.10",
                     *             "ttl": 1800
                     *           }
                     *         ],
                     *         "removed": [],
                     *         "kept": 0
                     *       },
                     *       "domain": "alder-and-finch.com",
                     *       "sent_at": "2027-01-15T09:30:00.000Z",
                     *       "ended_at": "2027-01-15T09:30:01.000Z"
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
            /** @description `domain_not_editable`, `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `domain_not_found`, `record_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `dns_not_managed`, `email_type_conflict`, `unsupported_records`, `record_exists`, `record_conflict` */
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
            /** @description `registrar_rejected`, `too_many_records`, `idempotency_key_reused` */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_changes` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_auth`, `registrar_error`, `registrar_bad_answer`, `registrar_unreachable`, `write_not_confirmed` */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_busy`, `registrar_unavailable`, `unavailable` */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_timeout` */
            504: {
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
    getRecord: {
        parameters: {
            query?: never;
            header?: {
                /** @description The ETag of the zone that you have: 304 if it is still that. For example `"2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"` */
                "if-none-match"?: string;
                /** @description `no-cache`: not from the cache (at the cost of a call to the registrar). For example `no-cache` */
                "cache-control"?: string;
            };
            path: {
                /**
                 * @description the registered name itself, in any case, Unicode or xn--; a subdomain is the name of a record
                 * @example alder-and-finch.com
                 */
                domain: string;
                /**
                 * @description its id, as in the zone
                 * @example b71c42652efd
                 */
                record: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The record */
            200: {
                headers: {
                    /**
                     * @description Of the whole zone: send it as If-Match with a write
                     * @example "2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"
                     */
                    etag?: string;
                    /**
                     * @description Seconds since the registrar told it
                     * @example 12
                     */
                    age?: string;
                    /**
                     * @description There when the registrar fails and this is older than it should be
                     * @example 110 - "Response is Stale"
                     */
                    warning?: string;
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
                     *       "id": "b71c42652efd",
                     *       "name": "hello",
                     *       "type": "A",
                     *       "address": "192.0.2.10",
                     *       "ttl": 1800
                     *     }
                     */
                    "application/json": components["schemas"]["HostRecord"];
                };
            };
            /** @description The zone is still as If-None-Match says */
            304: {
                headers: {
                    /**
                     * @description Of the whole zone: send it as If-Match with a write
                     * @example "2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"
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
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `domain_not_editable`, `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `domain_not_found`, `record_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `dns_not_managed` */
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
            /** @description `registrar_rejected` */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_auth`, `registrar_error`, `registrar_bad_answer`, `registrar_unreachable` */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_busy`, `registrar_unavailable` */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_timeout` */
            504: {
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
    addRecord: {
        parameters: {
            query?: {
                /** @description answers what would change, and writes nothing */
                dry_run?: boolean;
                /** @description asks another person for approval, and sends nothing before */
                propose?: boolean;
                /** @description proceeds where records of a type that cannot be sent, such as SRV, would be lost */
                force?: boolean;
            };
            header?: {
                /** @description The ETag of the zone as you read it: write only if it is still that. For example `"2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"` */
                "if-match"?: string;
                /** @description `respond-async`: answer 202 at once and carry the change out when calls are free. For example `respond-async` */
                prefer?: string;
                /** @description Repeating the request with this key within 24 hours writes nothing twice. For example `7b1f4a52-9d0e-4f0b-8a43-2f6c9d1e5a77` */
                "idempotency-key"?: string;
            };
            path: {
                /**
                 * @description the registered name itself, in any case, Unicode or xn--; a subdomain is the name of a record
                 * @example alder-and-finch.com
                 */
                domain: string;
                /**
                 * @description its type, in any case
                 * @example A
                 */
                record: "A" | "AAAA" | "ALIAS" | "CAA" | "CNAME" | "MX" | "MXE" | "NS" | "TXT" | "URL" | "URL301" | "FRAME";
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "hello",
                 *       "address": "192.0.2.10"
                 *     }
                 */
                "application/json": components["schemas"]["NewRecordInput"];
            };
        };
        responses: {
            /** @description The added record */
            201: {
                headers: {
                    /**
                     * @description Where it can be read
                     * @example /api/domains/alder-and-finch.com/dns/hosts/b71c42652efd
                     */
                    location?: string;
                    /**
                     * @description Of the whole zone: send it as If-Match with a write
                     * @example "2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"
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
                     *       "id": "b71c42652efd",
                     *       "name": "hello",
                     *       "type": "A",
                     *       "address": "192.0.2.10",
                     *       "ttl": 1800
                     *     }
                     */
                    "application/json": components["schemas"]["AddedRecord"];
                };
            };
            /** @description With `Prefer: respond-async`: the change is queued, its outcome will be at Location. With `propose=true`, or where the caller may only propose: it waits for an approval */
            202: {
                headers: {
                    /**
                     * @description Where the outcome can be read
                     * @example /api/changes/7
                     */
                    location?: string;
                    /**
                     * @description respond-async
                     * @example respond-async
                     */
                    "preference-applied"?: string;
                    /**
                     * @description Seconds after which to look for the outcome
                     * @example 5
                     */
                    "retry-after"?: string;
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
                     *       "created_at": "2027-01-15T09:30:00.000Z",
                     *       "by": "admin",
                     *       "request_id": "5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44",
                     *       "status": "confirmed",
                     *       "changes": {
                     *         "added": [
                     *           {
                     *             "id": "b71c42652efd",
                     *             "name": "hello",
                     *             "type": "A",
                     *             "address": "192.0.2.10",
                     *             "ttl": 1800
                     *           }
                     *         ],
                     *         "removed": [],
                     *         "kept": 0
                     *       },
                     *       "domain": "alder-and-finch.com",
                     *       "sent_at": "2027-01-15T09:30:00.000Z",
                     *       "ended_at": "2027-01-15T09:30:01.000Z"
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
            /** @description `domain_not_editable`, `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `domain_not_found`, `record_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `dns_not_managed`, `email_type_conflict`, `unsupported_records`, `record_exists`, `record_conflict` */
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
            /** @description `registrar_rejected`, `too_many_records`, `idempotency_key_reused` */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_changes` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_auth`, `registrar_error`, `registrar_bad_answer`, `registrar_unreachable`, `write_not_confirmed` */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_busy`, `registrar_unavailable`, `unavailable` */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_timeout` */
            504: {
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
    removeRecord: {
        parameters: {
            query?: {
                /** @description answers what would change, and writes nothing */
                dry_run?: boolean;
                /** @description asks another person for approval, and sends nothing before */
                propose?: boolean;
                /** @description proceeds where records of a type that cannot be sent, such as SRV, would be lost */
                force?: boolean;
            };
            header?: {
                /** @description The ETag of the zone as you read it: write only if it is still that. For example `"2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"` */
                "if-match"?: string;
                /** @description `respond-async`: answer 202 at once and carry the change out when calls are free. For example `respond-async` */
                prefer?: string;
                /** @description Repeating the request with this key within 24 hours writes nothing twice. For example `7b1f4a52-9d0e-4f0b-8a43-2f6c9d1e5a77` */
                "idempotency-key"?: string;
            };
            path: {
                /**
                 * @description the registered name itself, in any case, Unicode or xn--; a subdomain is the name of a record
                 * @example alder-and-finch.com
                 */
                domain: string;
                /**
                 * @description its id, as in the zone
                 * @example b71c42652efd
                 */
                record: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The zone as it now is, and what changed */
            200: {
                headers: {
                    /**
                     * @description Of the whole zone: send it as If-Match with a write
                     * @example "2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"
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
                     *       "domain": "alder-and-finch.com",
                     *       "uses_registrar_dns": true,
                     *       "email_type": "NONE",
                     *       "hosts": [
                     *         {
                     *           "id": "b71c42652efd",
                     *           "name": "hello",
                     *           "type": "A",
                     *           "address": "192.0.2.10",
                     *           "ttl": 1800
                     *         }
                     *       ],
                     *       "changes": {
                     *         "added": [
                     *           {
                     *             "id": "b71c42652efd",
                     *             "name": "hello",
                     *             "type": "A",
                     *             "address": "192.0.2.10",
                     *             "ttl": 1800
                     *           }
                     *         ],
                     *         "removed": [],
                     *         "kept": 0
                     *       },
                     *       "warnings": []
                     *     }
                     */
                    "application/json": components["schemas"]["WrittenZone"];
                };
            };
            /** @description With `Prefer: respond-async`: the change is queued, its outcome will be at Location. With `propose=true`, or where the caller may only propose: it waits for an approval */
            202: {
                headers: {
                    /**
                     * @description Where the outcome can be read
                     * @example /api/changes/7
                     */
                    location?: string;
                    /**
                     * @description respond-async
                     * @example respond-async
                     */
                    "preference-applied"?: string;
                    /**
                     * @description Seconds after which to look for the outcome
                     * @example 5
                     */
                    "retry-after"?: string;
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
                     *       "created_at": "2027-01-15T09:30:00.000Z",
                     *       "by": "admin",
                     *       "request_id": "5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44",
                     *       "status": "confirmed",
                     *       "changes": {
                     *         "added": [
                     *           {
                     *             "id": "b71c42652efd",
                     *             "name": "hello",
                     *             "type": "A",
                     *             "address": "192.0.2.10",
                     *             "ttl": 1800
                     *           }
                     *         ],
                     *         "removed": [],
                     *         "kept": 0
                     *       },
                     *       "domain": "alder-and-finch.com",
                     *       "sent_at": "2027-01-15T09:30:00.000Z",
                     *       "ended_at": "2027-01-15T09:30:01.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Change"];
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
            /** @description `domain_not_editable`, `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `domain_not_found`, `record_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `dns_not_managed`, `email_type_conflict`, `unsupported_records`, `record_exists`, `record_conflict` */
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
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_rejected`, `too_many_records`, `idempotency_key_reused` */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_changes` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_auth`, `registrar_error`, `registrar_bad_answer`, `registrar_unreachable`, `write_not_confirmed` */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_busy`, `registrar_unavailable`, `unavailable` */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_timeout` */
            504: {
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
    patchRecord: {
        parameters: {
            query?: {
                /** @description answers what would change, and writes nothing */
                dry_run?: boolean;
                /** @description asks another person for approval, and sends nothing before */
                propose?: boolean;
                /** @description proceeds where records of a type that cannot be sent, such as SRV, would be lost */
                force?: boolean;
            };
            header?: {
                /** @description The ETag of the zone as you read it: write only if it is still that. For example `"2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"` */
                "if-match"?: string;
                /** @description `respond-async`: answer 202 at once and carry the change out when calls are free. For example `respond-async` */
                prefer?: string;
                /** @description Repeating the request with this key within 24 hours writes nothing twice. For example `7b1f4a52-9d0e-4f0b-8a43-2f6c9d1e5a77` */
                "idempotency-key"?: string;
            };
            path: {
                /**
                 * @description the registered name itself, in any case, Unicode or xn--; a subdomain is the name of a record
                 * @example alder-and-finch.com
                 */
                domain: string;
                /**
                 * @description its id, as in the zone
                 * @example b71c42652efd
                 */
                record: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "address": "192.0.2.11"
                 *     }
                 */
                "application/json": components["schemas"]["RecordPatchInput"];
            };
        };
        responses: {
            /** @description The record as it now is */
            200: {
                headers: {
                    /**
                     * @description Where it is now
                     * @example /api/domains/alder-and-finch.com/dns/hosts/b71c42652efd
                     */
                    location?: string;
                    /**
                     * @description Of the whole zone: send it as If-Match with a write
                     * @example "2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"
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
                     *       "id": "b71c42652efd",
                     *       "name": "hello",
                     *       "type": "A",
                     *       "address": "192.0.2.10",
                     *       "ttl": 1800
                     *     }
                     */
                    "application/json": components["schemas"]["AddedRecord"];
                };
            };
            /** @description With `Prefer: respond-async`: the change is queued, its outcome will be at Location. With `propose=true`, or where the caller may only propose: it waits for an approval */
            202: {
                headers: {
                    /**
                     * @description Where the outcome can be read
                     * @example /api/changes/7
                     */
                    location?: string;
                    /**
                     * @description respond-async
                     * @example respond-async
                     */
                    "preference-applied"?: string;
                    /**
                     * @description Seconds after which to look for the outcome
                     * @example 5
                     */
                    "retry-after"?: string;
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
                     *       "created_at": "2027-01-15T09:30:00.000Z",
                     *       "by": "admin",
                     *       "request_id": "5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44",
                     *       "status": "confirmed",
                     *       "changes": {
                     *         "added": [
                     *           {
                     *             "id": "b71c42652efd",
                     *             "name": "hello",
                     *             "type": "A",
                     *             "address": "192.0.2.10",
                     *             "ttl": 1800
                     *           }
                     *         ],
                     *         "removed": [],
                     *         "kept": 0
                     *       },
                     *       "domain": "alder-and-finch.com",
                     *       "sent_at": "2027-01-15T09:30:00.000Z",
                     *       "ended_at": "2027-01-15T09:30:01.000Z"
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
            /** @description `domain_not_editable`, `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `domain_not_found`, `record_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `dns_not_managed`, `email_type_conflict`, `unsupported_records`, `record_exists`, `record_conflict` */
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
            /** @description `registrar_rejected`, `too_many_records`, `idempotency_key_reused` */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_changes` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_auth`, `registrar_error`, `registrar_bad_answer`, `registrar_unreachable`, `write_not_confirmed` */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_busy`, `registrar_unavailable`, `unavailable` */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_timeout` */
            504: {
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
    listRrsets: {
        parameters: {
            query?: {
                /** @description only of this name; @ for the domain itself */
                name?: string;
                /**
                 * @description in any case
                 * @example A
                 */
                type?: "A" | "AAAA" | "ALIAS" | "CAA" | "CNAME" | "MX" | "MXE" | "NS" | "TXT" | "URL" | "URL301" | "FRAME" | "SRV";
            };
            header?: {
                /** @description The ETag of the zone that you have: 304 if it is still that. For example `"2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"` */
                "if-none-match"?: string;
                /** @description `no-cache`: not from the cache (at the cost of a call to the registrar). For example `no-cache` */
                "cache-control"?: string;
            };
            path: {
                /**
                 * @description the registered name itself, in any case, Unicode or xn--; a subdomain is the name of a record
                 * @example alder-and-finch.com
                 */
                domain: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The RRsets */
            200: {
                headers: {
                    /**
                     * @description Of the whole zone: send it as If-Match with a write
                     * @example "2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"
                     */
                    etag?: string;
                    /**
                     * @description Seconds since the registrar told it
                     * @example 12
                     */
                    age?: string;
                    /**
                     * @description There when the registrar fails and this is older than it should be
                     * @example 110 - "Response is Stale"
                     */
                    warning?: string;
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
                     *       "domain": "alder-and-finch.com",
                     *       "rrsets": [
                     *         {
                     *           "name": "hello",
                     *           "type": "A",
                     *           "ttl": 1800,
                     *           "values": [
                     *             "192.0.2.10"
                     *           ]
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": {
                        /** @example alder-and-finch.com */
                        domain: string;
                        rrsets: components["schemas"]["Rrset"][];
                    };
                };
            };
            /** @description The zone is still as If-None-Match says */
            304: {
                headers: {
                    /**
                     * @description Of the whole zone: send it as If-Match with a write
                     * @example "2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"
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
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `domain_not_editable`, `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `domain_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `dns_not_managed` */
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
            /** @description `registrar_rejected` */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_auth`, `registrar_error`, `registrar_bad_answer`, `registrar_unreachable` */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_busy`, `registrar_unavailable` */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_timeout` */
            504: {
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
    getRrset: {
        parameters: {
            query?: never;
            header?: {
                /** @description The ETag of the zone that you have: 304 if it is still that. For example `"2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"` */
                "if-none-match"?: string;
                /** @description `no-cache`: not from the cache (at the cost of a call to the registrar). For example `no-cache` */
                "cache-control"?: string;
            };
            path: {
                /**
                 * @description the registered name itself, in any case, Unicode or xn--; a subdomain is the name of a record
                 * @example alder-and-finch.com
                 */
                domain: string;
                /**
                 * @description @ for the domain itself
                 * @example hello
                 */
                name: string;
                /**
                 * @description in any case
                 * @example A
                 */
                type: "A" | "AAAA" | "ALIAS" | "CAA" | "CNAME" | "MX" | "MXE" | "NS" | "TXT" | "URL" | "URL301" | "FRAME";
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The RRset */
            200: {
                headers: {
                    /**
                     * @description Of the whole zone: send it as If-Match with a write
                     * @example "2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"
                     */
                    etag?: string;
                    /**
                     * @description Seconds since the registrar told it
                     * @example 12
                     */
                    age?: string;
                    /**
                     * @description There when the registrar fails and this is older than it should be
                     * @example 110 - "Response is Stale"
                     */
                    warning?: string;
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
                     *       "name": "hello",
                     *       "type": "A",
                     *       "ttl": 1800,
                     *       "values": [
                     *         "192.0.2.10"
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Rrset"];
                };
            };
            /** @description The zone is still as If-None-Match says */
            304: {
                headers: {
                    /**
                     * @description Of the whole zone: send it as If-Match with a write
                     * @example "2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"
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
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `domain_not_editable`, `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `domain_not_found`, `record_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `dns_not_managed` */
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
            /** @description `registrar_rejected` */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_auth`, `registrar_error`, `registrar_bad_answer`, `registrar_unreachable` */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_busy`, `registrar_unavailable` */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_timeout` */
            504: {
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
    setRrset: {
        parameters: {
            query?: {
                /** @description answers what would change, and writes nothing */
                dry_run?: boolean;
                /** @description asks another person for approval, and sends nothing before */
                propose?: boolean;
                /** @description proceeds where records of a type that cannot be sent, such as SRV, would be lost */
                force?: boolean;
            };
            header?: {
                /** @description The ETag of the zone as you read it: write only if it is still that. For example `"2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"` */
                "if-match"?: string;
                /** @description `respond-async`: answer 202 at once and carry the change out when calls are free. For example `respond-async` */
                prefer?: string;
                /** @description Repeating the request with this key within 24 hours writes nothing twice. For example `7b1f4a52-9d0e-4f0b-8a43-2f6c9d1e5a77` */
                "idempotency-key"?: string;
                /** @description `*`: 412 if there is such an RRset already. For example `*` */
                "if-none-match"?: string;
            };
            path: {
                /**
                 * @description the registered name itself, in any case, Unicode or xn--; a subdomain is the name of a record
                 * @example alder-and-finch.com
                 */
                domain: string;
                /**
                 * @description @ for the domain itself
                 * @example hello
                 */
                name: string;
                /**
                 * @description in any case
                 * @example A
                 */
                type: "A" | "AAAA" | "ALIAS" | "CAA" | "CNAME" | "MX" | "MXE" | "NS" | "TXT" | "URL" | "URL301" | "FRAME";
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "ttl": 300,
                 *       "values": [
                 *         "192.0.2.10",
                 *         "192.0.2.11"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["NewRrsetInput"];
            };
        };
        responses: {
            /** @description The RRset as it now is */
            200: {
                headers: {
                    /**
                     * @description Of the whole zone: send it as If-Match with a write
                     * @example "2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"
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
                     *       "name": "hello",
                     *       "type": "A",
                     *       "ttl": 1800,
                     *       "values": [
                     *         "192.0.2.10"
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["WrittenRrset"];
                };
            };
            /** @description The new RRset: there was none */
            201: {
                headers: {
                    /**
                     * @description Of the whole zone: send it as If-Match with a write
                     * @example "2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"
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
                     *       "name": "hello",
                     *       "type": "A",
                     *       "ttl": 1800,
                     *       "values": [
                     *         "192.0.2.10"
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["WrittenRrset"];
                };
            };
            /** @description With `Prefer: respond-async`: the change is queued, its outcome will be at Location. With `propose=true`, or where the caller may only propose: it waits for an approval */
            202: {
                headers: {
                    /**
                     * @description Where the outcome can be read
                     * @example /api/changes/7
                     */
                    location?: string;
                    /**
                     * @description respond-async
                     * @example respond-async
                     */
                    "preference-applied"?: string;
                    /**
                     * @description Seconds after which to look for the outcome
                     * @example 5
                     */
                    "retry-after"?: string;
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
                     *       "created_at": "2027-01-15T09:30:00.000Z",
                     *       "by": "admin",
                     *       "request_id": "5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44",
                     *       "status": "confirmed",
                     *       "changes": {
                     *         "added": [
                     *           {
                     *             "id": "b71c42652efd",
                     *             "name": "hello",
                     *             "type": "A",
                     *             "address": "192.0.2.10",
                     *             "ttl": 1800
                     *           }
                     *         ],
                     *         "removed": [],
                     *         "kept": 0
                     *       },
                     *       "domain": "alder-and-finch.com",
                     *       "sent_at": "2027-01-15T09:30:00.000Z",
                     *       "ended_at": "2027-01-15T09:30:01.000Z"
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
            /** @description `domain_not_editable`, `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `domain_not_found`, `record_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `dns_not_managed`, `email_type_conflict`, `unsupported_records`, `record_exists`, `record_conflict` */
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
            /** @description `registrar_rejected`, `too_many_records`, `idempotency_key_reused` */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_changes` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_auth`, `registrar_error`, `registrar_bad_answer`, `registrar_unreachable`, `write_not_confirmed` */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_busy`, `registrar_unavailable`, `unavailable` */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_timeout` */
            504: {
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
    removeRrset: {
        parameters: {
            query?: {
                /** @description answers what would change, and writes nothing */
                dry_run?: boolean;
                /** @description asks another person for approval, and sends nothing before */
                propose?: boolean;
                /** @description proceeds where records of a type that cannot be sent, such as SRV, would be lost */
                force?: boolean;
            };
            header?: {
                /** @description The ETag of the zone as you read it: write only if it is still that. For example `"2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"` */
                "if-match"?: string;
                /** @description `respond-async`: answer 202 at once and carry the change out when calls are free. For example `respond-async` */
                prefer?: string;
                /** @description Repeating the request with this key within 24 hours writes nothing twice. For example `7b1f4a52-9d0e-4f0b-8a43-2f6c9d1e5a77` */
                "idempotency-key"?: string;
            };
            path: {
                /**
                 * @description the registered name itself, in any case, Unicode or xn--; a subdomain is the name of a record
                 * @example alder-and-finch.com
                 */
                domain: string;
                /**
                 * @description @ for the domain itself
                 * @example hello
                 */
                name: string;
                /**
                 * @description in any case
                 * @example A
                 */
                type: "A" | "AAAA" | "ALIAS" | "CAA" | "CNAME" | "MX" | "MXE" | "NS" | "TXT" | "URL" | "URL301" | "FRAME";
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What would change */
            200: {
                headers: {
                    /**
                     * @description Of the whole zone: send it as If-Match with a write
                     * @example "2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"
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
                     *       "domain": "alder-and-finch.com",
                     *       "uses_registrar_dns": true,
                     *       "email_type": "NONE",
                     *       "hosts": [
                     *         {
                     *           "id": "b71c42652efd",
                     *           "name": "hello",
                     *           "type": "A",
                     *           "address": "192.0.2.10",
                     *           "ttl": 1800
                     *         }
                     *       ],
                     *       "changes": {
                     *         "added": [
                     *           {
                     *             "id": "b71c42652efd",
                     *             "name": "hello",
                     *             "type": "A",
                     *             "address": "192.0.2.10",
                     *             "ttl": 1800
                     *           }
                     *         ],
                     *         "removed": [],
                     *         "kept": 0
                     *       },
                     *       "warnings": []
                     *     }
                     */
                    "application/json": components["schemas"]["WrittenZone"];
                };
            };
            /** @description With `Prefer: respond-async`: the change is queued, its outcome will be at Location. With `propose=true`, or where the caller may only propose: it waits for an approval */
            202: {
                headers: {
                    /**
                     * @description Where the outcome can be read
                     * @example /api/changes/7
                     */
                    location?: string;
                    /**
                     * @description respond-async
                     * @example respond-async
                     */
                    "preference-applied"?: string;
                    /**
                     * @description Seconds after which to look for the outcome
                     * @example 5
                     */
                    "retry-after"?: string;
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
                     *       "created_at": "2027-01-15T09:30:00.000Z",
                     *       "by": "admin",
                     *       "request_id": "5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44",
                     *       "status": "confirmed",
                     *       "changes": {
                     *         "added": [
                     *           {
                     *             "id": "b71c42652efd",
                     *             "name": "hello",
                     *             "type": "A",
                     *             "address": "192.0.2.10",
                     *             "ttl": 1800
                     *           }
                     *         ],
                     *         "removed": [],
                     *         "kept": 0
                     *       },
                     *       "domain": "alder-and-finch.com",
                     *       "sent_at": "2027-01-15T09:30:00.000Z",
                     *       "ended_at": "2027-01-15T09:30:01.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Change"];
                };
            };
            /** @description There is no such RRset now */
            204: {
                headers: {
                    /**
                     * @description Of the whole zone: send it as If-Match with a write
                     * @example "2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"
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
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `domain_not_editable`, `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `domain_not_found`, `record_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `dns_not_managed`, `email_type_conflict`, `unsupported_records`, `record_exists`, `record_conflict` */
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
            /** @description `url_too_long` */
            414: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_rejected`, `too_many_records`, `idempotency_key_reused` */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_changes` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_auth`, `registrar_error`, `registrar_bad_answer`, `registrar_unreachable`, `write_not_confirmed` */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_busy`, `registrar_unavailable`, `unavailable` */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_timeout` */
            504: {
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
    searchRecords: {
        parameters: {
            query?: {
                /** @description words that full name, type and value together contain, in any case, Unicode or A-labels */
                search?: string;
                /**
                 * @description in any case
                 * @example A
                 */
                type?: "A" | "AAAA" | "ALIAS" | "CAA" | "CNAME" | "MX" | "MXE" | "NS" | "TXT" | "URL" | "URL301" | "FRAME" | "SRV";
                /**
                 * @description only of this domain
                 * @example alder-and-finch.com
                 */
                domain?: string;
                page?: number;
                page_size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of records */
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
                     *       "records": [
                     *         {
                     *           "id": "b71c42652efd",
                     *           "name": "hello",
                     *           "type": "A",
                     *           "address": "192.0.2.10",
                     *           "ttl": 1800,
                     *           "domain": "alder-and-finch.com",
                     *           "read_at": "2027-01-15T09:30:00.000Z"
                     *         }
                     *       ],
                     *       "pagination": {
                     *         "page": 1,
                     *         "page_size": 50,
                     *         "total_items": 1,
                     *         "total_pages": 1
                     *       },
                     *       "zones_searched": 1
                     *     }
                     */
                    "application/json": {
                        records: components["schemas"]["FoundRecord"][];
                        pagination: components["schemas"]["Pagination"];
                        /** @description zones with records */
                        zones_searched: number;
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
    getZoneFile: {
        parameters: {
            query?: never;
            header?: {
                /** @description The ETag of the zone that you have: 304 if it is still that. For example `"2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"` */
                "if-none-match"?: string;
                /** @description `no-cache`: not from the cache (at the cost of a call to the registrar). For example `no-cache` */
                "cache-control"?: string;
            };
            path: {
                /**
                 * @description the registered name itself, in any case, Unicode or xn--; a subdomain is the name of a record
                 * @example alder-and-finch.com
                 */
                domain: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The zone file */
            200: {
                headers: {
                    /**
                     * @description Of the whole zone: send it as If-Match with a write
                     * @example "2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"
                     */
                    etag?: string;
                    /**
                     * @description Seconds since the registrar told it
                     * @example 12
                     */
                    age?: string;
                    /**
                     * @description There when the registrar fails and this is older than it should be
                     * @example 110 - "Response is Stale"
                     */
                    warning?: string;
                    /**
                     * @description The id of this request, also in the log; the one you sent, if any
                     * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                     */
                    "x-request-id"?: string;
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example $ORIGIN alder-and-finch.com.
                     *     hello	1800	IN	A	192.0.2.10
                     */
                    "text/dns": string;
                };
            };
            /** @description The zone is still as If-None-Match says */
            304: {
                headers: {
                    /**
                     * @description Of the whole zone: send it as If-Match with a write
                     * @example "2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"
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
            /** @description `unauthorized`, `token_expired` */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `domain_not_editable`, `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `domain_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `dns_not_managed` */
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
            /** @description `registrar_rejected` */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_auth`, `registrar_error`, `registrar_bad_answer`, `registrar_unreachable` */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_busy`, `registrar_unavailable` */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_timeout` */
            504: {
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
    putZoneFile: {
        parameters: {
            query?: {
                /** @description answers what would change, and writes nothing */
                dry_run?: boolean;
                /** @description asks another person for approval, and sends nothing before */
                propose?: boolean;
                /** @description proceeds where records of a type that cannot be sent, such as SRV, would be lost */
                force?: boolean;
            };
            header?: {
                /** @description The ETag of the zone as you read it: write only if it is still that. For example `"2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"` */
                "if-match"?: string;
                /** @description `respond-async`: answer 202 at once and carry the change out when calls are free. For example `respond-async` */
                prefer?: string;
                /** @description Repeating the request with this key within 24 hours writes nothing twice. For example `7b1f4a52-9d0e-4f0b-8a43-2f6c9d1e5a77` */
                "idempotency-key"?: string;
            };
            path: {
                /**
                 * @description the registered name itself, in any case, Unicode or xn--; a subdomain is the name of a record
                 * @example alder-and-finch.com
                 */
                domain: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /** @example hello 1800 IN A 192.0.2.10 */
                "text/dns": string;
            };
        };
        responses: {
            /** @description The zone as it now is, and what changed */
            200: {
                headers: {
                    /**
                     * @description Of the whole zone: send it as If-Match with a write
                     * @example "2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"
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
                     *       "domain": "alder-and-finch.com",
                     *       "uses_registrar_dns": true,
                     *       "email_type": "NONE",
                     *       "hosts": [
                     *         {
                     *           "id": "b71c42652efd",
                     *           "name": "hello",
                     *           "type": "A",
                     *           "address": "192.0.2.10",
                     *           "ttl": 1800
                     *         }
                     *       ],
                     *       "changes": {
                     *         "added": [
                     *           {
                     *             "id": "b71c42652efd",
                     *             "name": "hello",
                     *             "type": "A",
                     *             "address": "192.0.2.10",
                     *             "ttl": 1800
                     *           }
                     *         ],
                     *         "removed": [],
                     *         "kept": 0
                     *       },
                     *       "warnings": []
                     *     }
                     */
                    "application/json": components["schemas"]["WrittenZone"];
                };
            };
            /** @description With `Prefer: respond-async`: the change is queued, its outcome will be at Location. With `propose=true`, or where the caller may only propose: it waits for an approval */
            202: {
                headers: {
                    /**
                     * @description Where the outcome can be read
                     * @example /api/changes/7
                     */
                    location?: string;
                    /**
                     * @description respond-async
                     * @example respond-async
                     */
                    "preference-applied"?: string;
                    /**
                     * @description Seconds after which to look for the outcome
                     * @example 5
                     */
                    "retry-after"?: string;
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
                     *       "created_at": "2027-01-15T09:30:00.000Z",
                     *       "by": "admin",
                     *       "request_id": "5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44",
                     *       "status": "confirmed",
                     *       "changes": {
                     *         "added": [
                     *           {
                     *             "id": "b71c42652efd",
                     *             "name": "hello",
                     *             "type": "A",
                     *             "address": "192.0.2.10",
                     *             "ttl": 1800
                     *           }
                     *         ],
                     *         "removed": [],
                     *         "kept": 0
                     *       },
                     *       "domain": "alder-and-finch.com",
                     *       "sent_at": "2027-01-15T09:30:00.000Z",
                     *       "ended_at": "2027-01-15T09:30:01.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Change"];
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
            /** @description `domain_not_editable`, `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `domain_not_found`, `record_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `dns_not_managed`, `email_type_conflict`, `unsupported_records`, `record_exists`, `record_conflict` */
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
            /** @description `registrar_rejected`, `too_many_records`, `idempotency_key_reused` */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_changes` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_auth`, `registrar_error`, `registrar_bad_answer`, `registrar_unreachable`, `write_not_confirmed` */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_busy`, `registrar_unavailable`, `unavailable` */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_timeout` */
            504: {
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
    listHistory: {
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
                 * @description the registered name itself, in any case, Unicode or xn--; a subdomain is the name of a record
                 * @example alder-and-finch.com
                 */
                domain: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the history */
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
                     *           "id": 1,
                     *           "at": "2027-01-15T09:30:00.000Z",
                     *           "created_at": "2027-01-15T09:30:00.000Z",
                     *           "by": "admin",
                     *           "request_id": "5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44",
                     *           "status": "confirmed",
                     *           "domain": "text",
                     *           "sent_at": "2027-01-15T09:30:00.000Z",
                     *           "ended_at": "2027-01-15T09:30:00.000Z",
                     *           "changes": {
                     *             "added": [
                     *               {
                     *                 "id": "b71c42652efd",
                     *                 "name": "hello",
                     *                 "type": "A",
                     *                 "address": "192.0.2.10",
                     *                 "ttl": 1800
                     *               }
                     *             ],
                     *             "removed": [],
                     *             "kept": 0
                     *           },
                     *           "email_type_before": "NONE",
                     *           "email_type_after": "NONE"
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
                        history: components["schemas"]["HistoryEntry"][];
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
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `domain_not_found` */
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
    getHistoryEntry: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description the registered name itself, in any case, Unicode or xn--; a subdomain is the name of a record
                 * @example alder-and-finch.com
                 */
                domain: string;
                /**
                 * @description the number of a change
                 * @example 1
                 */
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The change, and both zones */
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
                     *       "created_at": "2027-01-15T09:30:00.000Z",
                     *       "by": "admin",
                     *       "request_id": "5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44",
                     *       "status": "confirmed",
                     *       "domain": "text",
                     *       "sent_at": "2027-01-15T09:30:00.000Z",
                     *       "ended_at": "2027-01-15T09:30:00.000Z",
                     *       "changes": {
                     *         "added": [
                     *           {
                     *             "id": "b71c42652efd",
                     *             "name": "hello",
                     *             "type": "A",
                     *             "address": "192.0.2.10",
                     *             "ttl": 1800
                     *           }
                     *         ],
                     *         "removed": [],
                     *         "kept": 0
                     *       },
                     *       "email_type_before": "NONE",
                     *       "email_type_after": "NONE",
                     *       "before": {
                     *         "email_type": "NONE",
                     *         "hosts": []
                     *       },
                     *       "after": {
                     *         "email_type": "NONE",
                     *         "hosts": [
                     *           {
                     *             "id": "b71c42652efd",
                     *             "name": "hello",
                     *             "type": "A",
                     *             "address": "192.0.2.10",
                     *             "ttl": 1800
                     *           }
                     *         ]
                     *       }
                     *     }
                     */
                    "application/json": {
                        id: number;
                        /** Format: date-time */
                        at: string;
                        /**
                         * Format: date-time
                         * @description when the change was requested
                         */
                        created_at: string;
                        /**
                         * @description a username, or domain-service for a repaired late write; null: changed outside
                         * @example admin
                         */
                        by: string | null;
                        /** @description name of the API token that was used */
                        token?: string;
                        /**
                         * @description the x-request-id of the write
                         * @example 5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44
                         */
                        request_id: string;
                        /** @description who approved it */
                        approved_by?: string;
                        /**
                         * Format: date-time
                         * @description made outside: when the zone was last seen without it
                         */
                        seen_since?: string;
                        /**
                         * @description confirmed: done. unconfirmed: sent, but the zone is unknown or differs. refused: not done, see problem. sending, queued: not done yet. cancelled: never sent. proposed: waits for an approval. rejected: not approved
                         * @example confirmed
                         * @enum {string}
                         */
                        status: "proposed" | "rejected" | "queued" | "sending" | "confirmed" | "refused" | "unconfirmed" | "cancelled";
                        /** @description outside: not made through this service. late_write: the service restored the zone. superseded: a later change made it pointless. expired: nobody approved it in 14 days. Of a rejected change: the words of the rejecter */
                        reason?: string;
                        /**
                         * @description queued in a backup that was restored: waits for an admin
                         * @constant
                         */
                        held?: true;
                        /**
                         * @description the zone could not be read back yet
                         * @constant
                         */
                        verified?: false;
                        warnings?: string[];
                        /** @description why the change was refused or is unconfirmed */
                        problem?: components["schemas"]["Problem"];
                        domain: string;
                        sent_at: string | null;
                        ended_at: string | null;
                        changes: components["schemas"]["ChangeSummary"];
                        /** @description of a proposed change: the ETag of the zone that it was evaluated on */
                        etag?: string;
                        /** @example NONE */
                        email_type_before: string | null;
                        /** @example NONE */
                        email_type_after: string | null;
                        /**
                         * @example {
                         *       "email_type": "NONE",
                         *       "hosts": []
                         *     }
                         */
                        before: components["schemas"]["PastZone"];
                        after: components["schemas"]["PastZone"];
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
            /** @description `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `domain_not_found`, `change_not_found` */
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
    restoreZone: {
        parameters: {
            query?: {
                /** @description answers what would change, and writes nothing */
                dry_run?: boolean;
                /** @description asks another person for approval, and sends nothing before */
                propose?: boolean;
                /** @description proceeds where records of a type that cannot be sent, such as SRV, would be lost */
                force?: boolean;
                /** @description which of the two zones of the change */
                to?: "before" | "after";
            };
            header?: {
                /** @description The ETag of the zone as you read it: write only if it is still that. For example `"2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"` */
                "if-match"?: string;
                /** @description `respond-async`: answer 202 at once and carry the change out when calls are free. For example `respond-async` */
                prefer?: string;
                /** @description Repeating the request with this key within 24 hours writes nothing twice. For example `7b1f4a52-9d0e-4f0b-8a43-2f6c9d1e5a77` */
                "idempotency-key"?: string;
            };
            path: {
                /**
                 * @description the registered name itself, in any case, Unicode or xn--; a subdomain is the name of a record
                 * @example alder-and-finch.com
                 */
                domain: string;
                /**
                 * @description the number of a change
                 * @example 1
                 */
                id: number;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /** @example {} */
                "application/json": Record<string, never> | null;
            };
        };
        responses: {
            /** @description The zone as it now is, and what changed */
            200: {
                headers: {
                    /**
                     * @description Of the whole zone: send it as If-Match with a write
                     * @example "2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"
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
                     *       "domain": "alder-and-finch.com",
                     *       "uses_registrar_dns": true,
                     *       "email_type": "NONE",
                     *       "hosts": [
                     *         {
                     *           "id": "b71c42652efd",
                     *           "name": "hello",
                     *           "type": "A",
                     *           "address": "192.0.2.10",
                     *           "ttl": 1800
                     *         }
                     *       ],
                     *       "changes": {
                     *         "added": [
                     *           {
                     *             "id": "b71c42652efd",
                     *             "name": "hello",
                     *             "type": "A",
                     *             "address": "192.0.2.10",
                     *             "ttl": 1800
                     *           }
                     *         ],
                     *         "removed": [],
                     *         "kept": 0
                     *       },
                     *       "warnings": []
                     *     }
                     */
                    "application/json": components["schemas"]["WrittenZone"];
                };
            };
            /** @description With `Prefer: respond-async`: the change is queued, its outcome will be at Location. With `propose=true`, or where the caller may only propose: it waits for an approval */
            202: {
                headers: {
                    /**
                     * @description Where the outcome can be read
                     * @example /api/changes/7
                     */
                    location?: string;
                    /**
                     * @description respond-async
                     * @example respond-async
                     */
                    "preference-applied"?: string;
                    /**
                     * @description Seconds after which to look for the outcome
                     * @example 5
                     */
                    "retry-after"?: string;
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
                     *       "created_at": "2027-01-15T09:30:00.000Z",
                     *       "by": "admin",
                     *       "request_id": "5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44",
                     *       "status": "confirmed",
                     *       "changes": {
                     *         "added": [
                     *           {
                     *             "id": "b71c42652efd",
                     *             "name": "hello",
                     *             "type": "A",
                     *             "address": "192.0.2.10",
                     *             "ttl": 1800
                     *           }
                     *         ],
                     *         "removed": [],
                     *         "kept": 0
                     *       },
                     *       "domain": "alder-and-finch.com",
                     *       "sent_at": "2027-01-15T09:30:00.000Z",
                     *       "ended_at": "2027-01-15T09:30:01.000Z"
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
            /** @description `domain_not_editable`, `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `domain_not_found`, `record_not_found`, `change_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `dns_not_managed`, `email_type_conflict`, `unsupported_records`, `record_exists`, `record_conflict` */
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
            /** @description `registrar_rejected`, `too_many_records`, `idempotency_key_reused` */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_changes` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_auth`, `registrar_error`, `registrar_bad_answer`, `registrar_unreachable`, `write_not_confirmed` */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_busy`, `registrar_unavailable`, `unavailable` */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_timeout` */
            504: {
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
    revertChange: {
        parameters: {
            query?: {
                /** @description answers what would change, and writes nothing */
                dry_run?: boolean;
                /** @description asks another person for approval, and sends nothing before */
                propose?: boolean;
                /** @description proceeds where records of a type that cannot be sent, such as SRV, would be lost */
                force?: boolean;
            };
            header?: {
                /** @description The ETag of the zone as you read it: write only if it is still that. For example `"2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"` */
                "if-match"?: string;
                /** @description `respond-async`: answer 202 at once and carry the change out when calls are free. For example `respond-async` */
                prefer?: string;
                /** @description Repeating the request with this key within 24 hours writes nothing twice. For example `7b1f4a52-9d0e-4f0b-8a43-2f6c9d1e5a77` */
                "idempotency-key"?: string;
            };
            path: {
                /**
                 * @description the registered name itself, in any case, Unicode or xn--; a subdomain is the name of a record
                 * @example alder-and-finch.com
                 */
                domain: string;
                /**
                 * @description the number of a change
                 * @example 1
                 */
                id: number;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /** @example {} */
                "application/json": Record<string, never> | null;
            };
        };
        responses: {
            /** @description The zone as it now is, and what changed */
            200: {
                headers: {
                    /**
                     * @description Of the whole zone: send it as If-Match with a write
                     * @example "2V0fQm1yJ8c9XkP4bT7sLwEaRuHdNzGi"
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
                     *       "domain": "alder-and-finch.com",
                     *       "uses_registrar_dns": true,
                     *       "email_type": "NONE",
                     *       "hosts": [
                     *         {
                     *           "id": "b71c42652efd",
                     *           "name": "hello",
                     *           "type": "A",
                     *           "address": "192.0.2.10",
                     *           "ttl": 1800
                     *         }
                     *       ],
                     *       "changes": {
                     *         "added": [
                     *           {
                     *             "id": "b71c42652efd",
                     *             "name": "hello",
                     *             "type": "A",
                     *             "address": "192.0.2.10",
                     *             "ttl": 1800
                     *           }
                     *         ],
                     *         "removed": [],
                     *         "kept": 0
                     *       },
                     *       "warnings": []
                     *     }
                     */
                    "application/json": components["schemas"]["WrittenZone"];
                };
            };
            /** @description With `Prefer: respond-async`: the change is queued, its outcome will be at Location. With `propose=true`, or where the caller may only propose: it waits for an approval */
            202: {
                headers: {
                    /**
                     * @description Where the outcome can be read
                     * @example /api/changes/7
                     */
                    location?: string;
                    /**
                     * @description respond-async
                     * @example respond-async
                     */
                    "preference-applied"?: string;
                    /**
                     * @description Seconds after which to look for the outcome
                     * @example 5
                     */
                    "retry-after"?: string;
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
                     *       "created_at": "2027-01-15T09:30:00.000Z",
                     *       "by": "admin",
                     *       "request_id": "5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44",
                     *       "status": "confirmed",
                     *       "changes": {
                     *         "added": [
                     *           {
                     *             "id": "b71c42652efd",
                     *             "name": "hello",
                     *             "type": "A",
                     *             "address": "192.0.2.10",
                     *             "ttl": 1800
                     *           }
                     *         ],
                     *         "removed": [],
                     *         "kept": 0
                     *       },
                     *       "domain": "alder-and-finch.com",
                     *       "sent_at": "2027-01-15T09:30:00.000Z",
                     *       "ended_at": "2027-01-15T09:30:01.000Z"
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
            /** @description `domain_not_editable`, `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `domain_not_found`, `record_not_found`, `change_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `dns_not_managed`, `email_type_conflict`, `unsupported_records`, `record_exists`, `record_conflict`, `revert_conflict` */
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
            /** @description `registrar_rejected`, `too_many_records`, `idempotency_key_reused` */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `too_many_changes` */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_auth`, `registrar_error`, `registrar_bad_answer`, `registrar_unreachable`, `write_not_confirmed` */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_busy`, `registrar_unavailable`, `unavailable` */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_timeout` */
            504: {
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
    listChanges: {
        parameters: {
            query?: {
                page?: number;
                page_size?: number;
                /** @description the `next` of the page before */
                after?: string;
                /**
                 * @description only of this domain
                 * @example alder-and-finch.com
                 */
                domain?: string;
                /** @description only by this user */
                by?: string;
                status?: "proposed" | "rejected" | "queued" | "sending" | "confirmed" | "refused" | "unconfirmed" | "cancelled";
                /** @description only requested at or after this time */
                since?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of changes */
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
                     *           "id": 1,
                     *           "at": "2027-01-15T09:30:00.000Z",
                     *           "created_at": "2027-01-15T09:30:00.000Z",
                     *           "by": "admin",
                     *           "request_id": "5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44",
                     *           "status": "confirmed",
                     *           "changes": {
                     *             "added": [
                     *               {
                     *                 "id": "b71c42652efd",
                     *                 "name": "hello",
                     *                 "type": "A",
                     *                 "address": "192.0.2.10",
                     *                 "ttl": 1800
                     *               }
                     *             ],
                     *             "removed": [],
                     *             "kept": 0
                     *           },
                     *           "domain": "alder-and-finch.com",
                     *           "sent_at": "2027-01-15T09:30:00.000Z",
                     *           "ended_at": "2027-01-15T09:30:01.000Z"
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
    getChange: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description the number of a change
                 * @example 1
                 */
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The change */
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
                     *       "created_at": "2027-01-15T09:30:00.000Z",
                     *       "by": "admin",
                     *       "request_id": "5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44",
                     *       "status": "confirmed",
                     *       "changes": {
                     *         "added": [
                     *           {
                     *             "id": "b71c42652efd",
                     *             "name": "hello",
                     *             "type": "A",
                     *             "address": "192.0.2.10",
                     *             "ttl": 1800
                     *           }
                     *         ],
                     *         "removed": [],
                     *         "kept": 0
                     *       },
                     *       "domain": "alder-and-finch.com",
                     *       "sent_at": "2027-01-15T09:30:00.000Z",
                     *       "ended_at": "2027-01-15T09:30:01.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Change"];
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
    cancelChange: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description the number of a change
                 * @example 1
                 */
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The cancelled change */
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
                     *       "created_at": "2027-01-15T09:30:00.000Z",
                     *       "by": "admin",
                     *       "request_id": "5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44",
                     *       "status": "confirmed",
                     *       "changes": {
                     *         "added": [
                     *           {
                     *             "id": "b71c42652efd",
                     *             "name": "hello",
                     *             "type": "A",
                     *             "address": "192.0.2.10",
                     *             "ttl": 1800
                     *           }
                     *         ],
                     *         "removed": [],
                     *         "kept": 0
                     *       },
                     *       "domain": "alder-and-finch.com",
                     *       "sent_at": "2027-01-15T09:30:00.000Z",
                     *       "ended_at": "2027-01-15T09:30:01.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Change"];
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
            /** @description `change_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `change_not_queued` */
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
    releaseHeldChanges: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The changes are queued */
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
                     *       "count": 3
                     *     }
                     */
                    "application/json": components["schemas"]["HeldChanges"];
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
    cancelHeldChanges: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The changes are cancelled */
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
                     *       "count": 3
                     *     }
                     */
                    "application/json": components["schemas"]["HeldChanges"];
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
    approveChange: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description the number of a change
                 * @example 1
                 */
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The queued change */
            202: {
                headers: {
                    /**
                     * @description Where the outcome can be read
                     * @example /api/changes/7
                     */
                    location?: string;
                    /**
                     * @description Seconds after which to look for the outcome
                     * @example 5
                     */
                    "retry-after"?: string;
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
                     *       "created_at": "2027-01-15T09:30:00.000Z",
                     *       "by": "admin",
                     *       "request_id": "5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44",
                     *       "status": "confirmed",
                     *       "changes": {
                     *         "added": [
                     *           {
                     *             "id": "b71c42652efd",
                     *             "name": "hello",
                     *             "type": "A",
                     *             "address": "192.0.2.10",
                     *             "ttl": 1800
                     *           }
                     *         ],
                     *         "removed": [],
                     *         "kept": 0
                     *       },
                     *       "domain": "alder-and-finch.com",
                     *       "sent_at": "2027-01-15T09:30:00.000Z",
                     *       "ended_at": "2027-01-15T09:30:01.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Change"];
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
            /** @description `domain_not_editable`, `own_change`, `forbidden` */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `domain_not_found`, `change_not_found` */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `dns_not_managed`, `change_closed`, `change_outdated` */
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
            /** @description `registrar_rejected` */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_auth`, `registrar_error`, `registrar_bad_answer`, `registrar_unreachable` */
            502: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_busy`, `registrar_unavailable` */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description `registrar_timeout` */
            504: {
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
    rejectChange: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description the number of a change
                 * @example 1
                 */
                id: number;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "reason": "the address is that of the old server"
                 *     }
                 */
                "application/json": components["schemas"]["RejectionInput"];
            };
        };
        responses: {
            /** @description The rejected change */
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
                     *       "created_at": "2027-01-15T09:30:00.000Z",
                     *       "by": "admin",
                     *       "request_id": "5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44",
                     *       "status": "confirmed",
                     *       "changes": {
                     *         "added": [
                     *           {
                     *             "id": "b71c42652efd",
                     *             "name": "hello",
                     *             "type": "A",
                     *             "address": "192.0.2.10",
                     *             "ttl": 1800
                     *           }
                     *         ],
                     *         "removed": [],
                     *         "kept": 0
                     *       },
                     *       "domain": "alder-and-finch.com",
                     *       "sent_at": "2027-01-15T09:30:00.000Z",
                     *       "ended_at": "2027-01-15T09:30:01.000Z"
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
            /** @description `own_change`, `forbidden` */
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
            /** @description `change_closed` */
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
                     *           "type": "zone.changed",
                     *           "at": "2027-01-15T09:30:00.000Z",
                     *           "by": "admin",
                     *           "request_id": "5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44",
                     *           "data": {
                     *             "id": 1,
                     *             "at": "2027-01-15T09:30:00.000Z",
                     *             "created_at": "2027-01-15T09:30:00.000Z",
                     *             "by": "admin",
                     *             "request_id": "5f0c1a52-6c3e-4d39-9a56-0f6e0d1d7a44",
                     *             "status": "confirmed",
                     *             "changes": {
                     *               "added": [
                     *                 {
                     *                   "id": "b71c42652efd",
                     *                   "name": "hello",
                     *                   "type": "A",
                     *                   "address": "192.0.2.10",
                     *                   "ttl": 1800
                     *                 }
                     *               ],
                     *               "removed": [],
                     *               "kept": 0
                     *             },
                     *             "domain": "alder-and-finch.com",
                     *             "sent_at": "2027-01-15T09:30:00.000Z",
                     *             "ended_at": "2027-01-15T09:30:01.000Z"
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
            /** @description `forbidden` */
            403: {
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
                     *           "domains": null,
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
                     *       "domains": null,
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
                     *       "domains": null,
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
                     *       "domains": null,
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
    getRegistrar: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The state of the account behind this service */
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
                     *       "registrar": "sandbox",
                     *       "client_ip": "192.0.2.7",
                     *       "breaker": "closed",
                     *       "budget": [
                     *         {
                     *           "window": "minute",
                     *           "limit": 20,
                     *           "left": 17,
                     *           "next_free_at": "2027-01-15T09:30:00.000Z"
                     *         }
                     *       ],
                     *       "calls": [
                     *         {
                     *           "from": "2027-01-15T09:30:00.000Z",
                     *           "calls": 1,
                     *           "reads": 1
                     *         }
                     *       ],
                     *       "calls_waiting": 1,
                     *       "domain_list": {
                     *         "domains": 1,
                     *         "read_at": "2027-01-15T09:30:00.000Z",
                     *         "is_reading": true,
                     *         "pages_read": 1,
                     *         "pages": 1
                     *       },
                     *       "sweep": {
                     *         "interval_s": 21600,
                     *         "is_active": true,
                     *         "domains": 1,
                     *         "seen": 1
                     *       },
                     *       "last_success_at": "2027-01-15T09:30:00.000Z",
                     *       "last_failure": null
                     *     }
                     */
                    "application/json": components["schemas"]["RegistrarState"];
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
}
