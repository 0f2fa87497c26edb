/** The parts of a comma-separated setting, without blanks and empty parts. */
export const splitList = (text: string) => text.split(',').flatMap((part) => part.trim() || [])
