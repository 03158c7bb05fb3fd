/** A command line's words, none of which has a space. */
export const words = (line: string): string[] => line.split(' ');
