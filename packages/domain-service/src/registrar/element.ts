/** An XML element. Every value stays text: a TXT record `1e3` is no number. */
export interface Element {
  name: string
  attributes: Record<string, string>
  children: Element[]
  text: string
}

/** Children by name, case-insensitive: the registrar sends `host` and documents `Host`. */
export const childrenOf = (element: Element | undefined, name: string): Element[] =>
  element?.children.filter((child) => child.name.toLowerCase() === name.toLowerCase()) ?? []

export const childOf = (element: Element | undefined, name: string): Element | undefined =>
  childrenOf(element, name)[0]
