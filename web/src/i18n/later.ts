import { en } from "./en";
import { enLater } from "./en-later";

// A part that comes later brings its texts with it: every file that uses one of them imports this one.
Object.assign(en, enLater);
