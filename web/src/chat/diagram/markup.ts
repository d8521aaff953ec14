// What stands between two pairs of angle brackets is a word of class diagrams, and a line break is a part of labels.
const harmless = /<<[\w ,-]+>>|<br\s*\/?>/gi;
const tag = /<\s*[a-z!/?]|(&|#)(lt|x0*3c|#?0*60)\b;?/i;

/**
 * hasMarkup: a diagram's text has tags, plain or spelled as entities. The library measures labels in the page itself, where a
 * tag would be one for a moment, before the picture is made.
 */
export const hasMarkup = (text: string): boolean => tag.test(text.replace(harmless, ""));
