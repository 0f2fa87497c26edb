/** Text as searches compare it: case and Unicode spelling do not matter. Upper case, since sigma has two small forms. */
export const fold = (text: string) => text.toLowerCase().toUpperCase().normalize('NFC')
