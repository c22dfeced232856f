/** The pages that are seen less often: their scripts are one file, which is loaded when one of them is shown first. */

export { Audit } from "./Audit";
export { Kinds } from "./Kinds";
export { Model } from "./Model";
export { Models } from "./Models";
export { Report } from "./Report";
export { Reports } from "./Reports";
export { Settings } from "./Settings";
export { SignIn } from "./SignIn";
export { Usage } from "./Usage";
