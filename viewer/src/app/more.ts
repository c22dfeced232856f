/** The pages that are seen less often: their scripts are one file, which is loaded when one of them is shown first. */

export { Audit } from "../features/audit/Audit";
export { Model } from "../features/models/Model";
export { Models } from "../features/models/Models";
export { Kinds } from "../features/projects/Kinds";
export { Report } from "../features/reports/Report";
export { Reports } from "../features/reports/Reports";
export { Settings } from "../features/settings/Settings";
export { SignIn } from "../features/signin/SignIn";
export { Usage } from "../features/usage/Usage";
