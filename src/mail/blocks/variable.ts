/** A variable in a text: its name, and its default after `|`. */
export const VARIABLE = /\{\{[ \t]*([A-Za-z_][A-Za-z0-9_.]*)[ \t]*(?:\|([^{}\r\n]*))?\}\}/g;
