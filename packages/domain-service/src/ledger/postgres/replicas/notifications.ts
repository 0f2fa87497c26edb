/** A change of a domain was queued or has ended, or its lease was released; the payload is the domain. */
export const changesChannel = 'domain_service_changes'

/** SQL that notifies all replicas, with the domain as the parameter of this number. */
export const notify = (parameter: number) => `pg_notify('${changesChannel}', $${parameter}::text)`
